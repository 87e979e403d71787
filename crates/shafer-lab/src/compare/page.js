"use strict";
(() => {
  const $ = (id) => document.getElementById(id);
  const data = JSON.parse($("data").textContent);

  // The table: a click sorts, another reverses the order. Missing numbers stay at the end.
  const table = $("numbers");
  const heads = [...table.tHead.rows[0].cells];
  const key = (row, column) => {
    const cell = row.cells[column];
    if (column === 0) return cell.textContent;
    return cell.dataset.value === "" ? null : Number(cell.dataset.value);
  };
  heads.forEach((head, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = head.textContent;
    head.replaceChildren(button);
    button.addEventListener("click", () => {
      const down = head.getAttribute("aria-sort") === "ascending";
      heads.forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      const rows = [...table.tBodies[0].rows];
      rows.sort((a, b) => {
        const [x, y] = [key(a, column), key(b, column)];
        if (x === null || y === null) return (x === null) - (y === null);
        const order = column === 0 ? x.localeCompare(y) : x - y;
        return down ? -order : order;
      });
      table.tBodies[0].append(...rows);
    });
  });
  document.querySelector(".sorting").hidden = false;

  // The rows.
  if (data.rows.length === 0) {
    $("rows").hidden = true;
    return;
  }
  const [place, choice, scale, find, goto] = ["place", "method", "scale", "find", "goto"].map($);
  place.max = data.rows.length - 1;
  data.methods.forEach((method, index) => choice.append(new Option(method.name, index)));
  const softmax = data.softmax;
  const element = (name, text) => {
    const made = document.createElement("div");
    made.className = name;
    if (text !== undefined) made.textContent = text;
    return made;
  };
  data.find.forEach((list, index) => {
    const group = document.createElement("optgroup");
    group.label = list.title;
    list.rows.forEach(({ row, score }) =>
      group.append(new Option(`row ${row}: ${Number(score.toPrecision(3))}`, `${index} ${row}`)));
    find.append(group);
  });
  const bar = (p, width, colour) => {
    const made = element(p === null ? "none" : "");
    if (p !== null) {
      made.style.width = `${100 * width(p)}%`;
      made.style.background = colour;
    }
    return made;
  };
  const number = (p) => (p > 0 && p < 0.00005 ? p.toExponential(1) : p.toFixed(4));
  const logarithm = (p) => (p > 0 ? `ln p ${Math.log(p).toFixed(2)}` : "p = 0");
  // The conflict of the evidence from -ln(1 - conflict); near 1, as the distance from 1.
  const conflict = (x) => (x < Math.log(1e4) ? (1 - Math.exp(-x)).toFixed(4)
    : `1 − 10^−${(x / Math.LN10).toFixed(0)}`);
  const name = (index) => data.labels[index] ?? String(index);

  const show = () => {
    const row = data.rows[Number(place.value)];
    const method = data.methods[Number(choice.value)];
    const found = row.methods[Number(choice.value)];
    $("before").disabled = Number(place.value) === 0;
    $("after").disabled = Number(place.value) === data.rows.length - 1;
    place.setAttribute("aria-valuetext", `row ${row.row}`);
    goto.value = row.row;
    $("softmax-colour").style.background = softmax;
    $("method-colour").style.background = method.colour;
    $("method-name").textContent = method.name;
    $("summary").textContent = found
      ? `Row ${row.row}: ${method.name} keeps ${found.kept} of ${data.classes} classes`
      : `Row ${row.row}: ${method.name} gives no distribution`;
    const kept = row.classes.map((_, i) => (found ? found.probabilities[i] : null));
    const shown = [...row.softmax, ...kept.map((p) => p ?? 0)];
    const largest = Math.max(...shown) || 1;
    // Next to a nearly certain class, the bars of all others would vanish.
    const logarithmic = scale.value === "log" || (scale.value === "auto" && row.softmax[0] > 0.99);
    const least = Math.log(Math.min(...shown.filter((p) => p > 0), 0.1)) - 1;
    const width = logarithmic ? (p) => (p > 0 ? 1 - Math.log(p) / least : 0) : (p) => p / largest;
    const text = logarithmic ? logarithm : number;
    $("scale-words").textContent = logarithmic
      ? `Bars are logarithmic, from p = ${Math.exp(least).toExponential(0)}` : "";
    const facts = [
      `effective number of classes of softmax ${row.effective_classes.toFixed(2)}`,
      `conflict between the evidence for different classes ${conflict(row.conflict)}`,
    ];
    if (found) facts.unshift(`softmax mass dropped ${number(found.dropped)}`);
    if (row.true_class !== undefined) {
      const at = row.classes.indexOf(row.true_class);
      const fate = at < 0 || !found ? "" : kept[at] === null ? ", dropped" : ", kept";
      facts.unshift(`true class ${name(row.true_class)}${fate}`);
    }
    $("facts").textContent = facts.join("; ");
    $("classes").replaceChildren(...row.classes.map((index, i) => {
      const line = element(kept[i] === null ? "class dropped" : "class");
      const bars = element("bars");
      bars.append(bar(row.softmax[i], width, softmax), bar(kept[i], width, method.colour));
      const numbers = element("numbers");
      const second = element("", kept[i] === null ? "" : text(kept[i]));
      if (kept[i] === null && found) {
        const mark = document.createElement("b");
        mark.className = "mark";
        mark.textContent = "✕ ";
        second.append(mark, "dropped");
      }
      numbers.append(element("", text(row.softmax[i])), second);
      line.append(element("name", name(index) + (index === row.true_class ? " ◂ true" : "")), bars, numbers);
      return line;
    }));
    const hidden = data.classes - row.classes.length;
    const more = found ? found.kept - kept.filter((p) => p !== null).length : 0;
    $("rest").textContent = hidden > 0
      ? `${hidden} less probable classes are not shown${found ? `, of which ${more} are kept` : ""}.`
      : "";
  };
  const step = (by) => {
    // The slider clamps its value.
    place.value = Number(place.value) + by;
    show();
  };
  // Goes to the nearest row on the page.
  const go = (row) => {
    const distance = (at) => Math.abs(data.rows[at].row - row);
    place.value = data.rows.reduce((best, _, at) => (distance(at) < distance(best) ? at : best), 0);
    show();
    const shown = data.rows[Number(place.value)].row;
    if (shown !== row) {
      $("facts").textContent = `Row ${row} is not on this page; this is the nearest. ${$("facts").textContent}`;
    }
  };
  goto.addEventListener("change", () => {
    if (goto.value !== "" && Number.isFinite(Number(goto.value))) go(Number(goto.value));
  });
  find.addEventListener("change", () => {
    if (find.value === "") return;
    const [list, row] = find.value.split(" ").map(Number);
    if (data.find[list].method !== null) choice.value = data.find[list].method;
    go(row);
  });
  place.addEventListener("input", show);
  choice.addEventListener("change", show);
  scale.addEventListener("change", show);
  $("before").addEventListener("click", () => step(-1));
  $("after").addEventListener("click", () => step(1));
  document.addEventListener("keydown", (event) => {
    const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!by || event.altKey || event.ctrlKey || event.metaKey || event.shiftKey) return;
    // These elements handle the arrow keys themselves.
    if (event.target.closest("input, select, .scroll")) return;
    event.preventDefault();
    step(by);
  });
  $("stepper").hidden = false;
  show();
})();
