"use strict";
(() => {
  const $ = (id) => document.getElementById(id);
  const data = JSON.parse($("data").textContent);

  // The table: a click sorts, another turns the order round. Missing numbers stay at the end.
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
  const [place, choice] = [$("place"), $("method")];
  place.max = data.rows.length - 1;
  data.methods.forEach((method, index) => choice.append(new Option(method.name, index)));
  const softmax = data.methods.find((method) => method.name === "softmax").colour;
  const element = (name, text) => {
    const made = document.createElement("div");
    made.className = name;
    if (text !== undefined) made.textContent = text;
    return made;
  };
  const bar = (p, largest, colour) => {
    const made = element(p === null ? "none" : "");
    if (p !== null) {
      made.style.width = `${(100 * p) / largest}%`;
      made.style.background = colour;
    }
    return made;
  };
  const number = (p) => (p > 0 && p < 0.00005 ? p.toExponential(1) : p.toFixed(4));

  const show = () => {
    const row = data.rows[Number(place.value)];
    const method = data.methods[Number(choice.value)];
    const found = row.methods[Number(choice.value)];
    $("before").disabled = Number(place.value) === 0;
    $("after").disabled = Number(place.value) === data.rows.length - 1;
    place.setAttribute("aria-valuetext", `row ${row.row}`);
    $("softmax-colour").style.background = softmax;
    $("method-colour").style.background = method.colour;
    $("method-name").textContent = method.name;
    $("summary").textContent = found
      ? `Row ${row.row}: ${method.name} keeps ${found.kept} of ${data.classes} classes`
      : `Row ${row.row}: ${method.name} gives no distribution`;
    const kept = row.classes.map((_, i) => (found ? found.probabilities[i] : null));
    const largest = Math.max(...row.softmax, ...kept.map((p) => p ?? 0)) || 1;
    $("classes").replaceChildren(...row.classes.map((index, i) => {
      const line = element(kept[i] === null ? "class dropped" : "class");
      const bars = element("bars");
      bars.append(bar(row.softmax[i], largest, softmax), bar(kept[i], largest, method.colour));
      const numbers = element("numbers");
      const second = element("", kept[i] === null ? "" : number(kept[i]));
      if (kept[i] === null && found) {
        const mark = document.createElement("b");
        mark.className = "mark";
        mark.textContent = "✕ ";
        second.append(mark, "dropped");
      }
      numbers.append(element("", number(row.softmax[i])), second);
      line.append(element("name", data.labels[index] ?? String(index)), bars, numbers);
      return line;
    }));
    const hidden = data.classes - row.classes.length;
    const more = found ? found.kept - kept.filter((p) => p !== null).length : 0;
    $("rest").textContent = hidden > 0
      ? `${hidden} less probable classes are not shown${found ? `, of which ${more} are kept` : ""}.`
      : "";
  };
  const step = (by) => {
    // Values beyond the ends stay at the ends.
    place.value = Number(place.value) + by;
    show();
  };
  place.addEventListener("input", show);
  choice.addEventListener("change", show);
  $("before").addEventListener("click", () => step(-1));
  $("after").addEventListener("click", () => step(1));
  document.addEventListener("keydown", (event) => {
    const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!by || event.altKey || event.ctrlKey || event.metaKey || event.shiftKey) return;
    // A slider, a list and what scrolls sideways have uses of their own for these keys.
    if (event.target.closest("input, select, .scroll")) return;
    event.preventDefault();
    step(by);
  });
  $("stepper").hidden = false;
  show();
})();
