"""Makes DejaVuSans.ttf and DejaVuSans-Bold.ttf: the characters that figures use, without hinting.

    pip install fonttools
    python3 make_subset.py /usr/share/fonts/truetype/dejavu

The argument is the folder of the whole fonts (DejaVu 2.37). See LICENSE beside this script.
"""

import sys
from pathlib import Path

from fontTools import subset

HERE = Path(__file__).resolve().parent
CHARACTERS = [*range(0x20, 0x7F), *range(0xA0, 0x180)] + [
    ord(c) for c in "αβλμπσΣ–—‘’“”•…−×÷±≈≠≤≥∞→←↑↓✕▲"
]

for name in ("DejaVuSans.ttf", "DejaVuSans-Bold.ttf"):
    options = subset.Options()
    options.hinting = False
    options.layout_features = []
    options.drop_tables += ["GPOS", "GSUB", "GDEF", "kern", "FFTM", "gasp"]
    options.name_IDs = [0, 1, 2, 4, 6, 13, 14]
    options.glyph_names = False
    font = subset.load_font(str(Path(sys.argv[1]) / name), options)
    subsetter = subset.Subsetter(options)
    subsetter.populate(unicodes=CHARACTERS)
    subsetter.subset(font)
    font.save(HERE / name)
