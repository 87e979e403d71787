"use strict";
(() => {
  const frames = [...document.querySelectorAll("section.figure")];
  if (frames.length < 2) return;
  const $ = (id) => document.getElementById(id);
  const place = $("place");
  place.max = frames.length - 1;
  const show = () => {
    const now = Number(place.value);
    frames.forEach((frame, index) => { frame.hidden = index !== now; });
    $("frame").textContent = `${now + 1} of ${frames.length}`;
    $("before").disabled = now === 0;
    $("after").disabled = now === frames.length - 1;
  };
  const step = (by) => () => { place.value = Number(place.value) + by; show(); };
  place.addEventListener("input", show);
  $("before").addEventListener("click", step(-1));
  $("after").addEventListener("click", step(1));
  $("controls").hidden = false;
  show();
})();
