// -- small charts: how the stream went, and what the method says of itself ----------------------
const SVG = "http://www.w3.org/2000/svg";
function el(parent, name, attributes, text) {
  const node = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  if (text !== undefined) node.textContent = text;
  parent.append(node);
  return node;
}

function ticks(low, high, about) {
  const raw = (high - low) / about || 1;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((m) => m * power).find((s) => s >= raw);
  const out = [];
  for (let t = Math.ceil(low / step) * step; t <= high + step * 1e-6; t += step) out.push(t);
  return out;
}

// As many digits as tell neighbouring ticks apart.
function tickText(marks) {
  const step = marks.length > 1 ? marks[1] - marks[0] : 1, digits = Math.max(0, Math.ceil(-Math.log10(step) - 1e-9));
  return (v) => v.toLocaleString("en", { minimumFractionDigits: digits, maximumFractionDigits: digits });
}

function frame(host, label, { x, y, format = null, height = 180 }) {
  const width = Math.max(260, host.clientWidth - 24);
  const box = { left: 44, right: width - 8, top: 8, bottom: height - 26 };
  const svg = el(host, "svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label });
  const px = (v) => box.left + (box.right - box.left) * (x[1] > x[0] ? (v - x[0]) / (x[1] - x[0]) : 0.5);
  const py = (v) => box.bottom - (box.bottom - box.top) * (y[1] > y[0] ? (v - y[0]) / (y[1] - y[0]) : 0.5);
  const across = ticks(y[0], y[1], 4), say = format ?? tickText(across);
  for (const t of across) {
    el(svg, "line", { class: "grid", x1: box.left, x2: box.right, y1: py(t), y2: py(t) });
    el(svg, "text", { x: box.left - 6, y: py(t) + 4, "text-anchor": "end" }, say(t));
  }
  for (const t of ticks(x[0], x[1], width > 500 ? 7 : 4)) {
    if (x[1] > 1 && !Number.isInteger(t)) continue; // images and epochs are whole
    el(svg, "text", { x: px(t), y: height - 6, "text-anchor": px(t) > box.right - 20 ? "end" : "middle" }, number(t));
  }
  return { svg, box, px, py };
}

function hover(host, plot, xs, say) {
  const tip = make("div", { class: "tip", hidden: true });
  host.append(tip);
  const cursor = el(plot.svg, "line", { class: "cursor", y1: plot.box.top, y2: plot.box.bottom, visibility: "hidden" });
  plot.svg.addEventListener("pointermove", (event) => {
    const bounds = plot.svg.getBoundingClientRect(), scale = bounds.width / plot.svg.viewBox.baseVal.width;
    const at = (event.clientX - bounds.left) / scale;
    let best = 0;
    xs.forEach((v, i) => { if (Math.abs(plot.px(v) - at) < Math.abs(plot.px(xs[best]) - at)) best = i; });
    const where = plot.px(xs[best]);
    cursor.setAttribute("x1", where);
    cursor.setAttribute("x2", where);
    cursor.setAttribute("visibility", "visible");
    tip.hidden = false;
    tip.textContent = say(best);
    const left = where * scale + 24;
    tip.style.left = `${left + tip.offsetWidth > host.clientWidth ? left - tip.offsetWidth - 28 : left}px`;
    tip.style.top = "1rem";
  });
  plot.svg.addEventListener("pointerleave", () => { tip.hidden = true; cursor.setAttribute("visibility", "hidden"); });
}

const noChart = (id) => { $(id).closest("figure").hidden = true; };
const middles = (edges) => edges.slice(1).map((end, i) => (edges[i] + end) / 2);

function warmupLine(plot, last) {
  if (!(data.warmup > 0 && data.warmup < last)) return;
  const x = plot.px(data.warmup);
  el(plot.svg, "line", { class: "mark", x1: x, x2: x, y1: plot.box.top, y2: plot.box.bottom });
  el(plot.svg, "text", { x: x - 5, y: plot.box.bottom - 6, "text-anchor": "end" }, "buffer");
}

// What categories without a name are called beside known classes, and where nothing was known.
const [NEW, MANY] = data.groups ? ["group", "groups"] : ["new", "new categories"];

function shareChart() {
  const host = $("share-chart"), { edges, novel } = data.course, n = novel.length, last = edges[n];
  if (data.groups && data.course.born_known.length === 0) { noChart("share-chart"); return; } // all in groups
  host.replaceChildren();
  const plot = frame(host, "Share of new images over the stream", { x: [0, last], y: [0, 1], format: percent });
  // Steps, not slopes: each value speaks for its whole stretch.
  const top = novel.map((v, i) => `L${plot.px(edges[i])},${plot.py(v)}L${plot.px(edges[i + 1])},${plot.py(v)}`).join("");
  const left = plot.px(0), right = plot.px(last), { top: roof, bottom } = plot.box;
  el(plot.svg, "path", { class: "area-known", d: `M${left},${roof}${top}L${right},${roof}Z`, opacity: 0.85 });
  el(plot.svg, "path", { class: "area-novel", d: `M${left},${bottom}${top}L${right},${bottom}Z`, opacity: 0.92 });
  const label = (text, from, to) => { if (to - from > 0.16) el(plot.svg, "text", { class: "area-label", x: left + 12, y: plot.py((from + to) / 2) + 5 }, text); };
  label(data.groups ? "groups" : "new", 0, novel[0]);
  label("known", novel[0], 1);
  hover(host, plot, middles(edges), (i) => `images ${number(edges[i])} to ${number(edges[i + 1])}\n${data.groups ? "in groups" : "new"} ${percent(novel[i])}, known ${percent(1 - novel[i])}`);
}

// Several lines over one axis: { name, kind, xs, ys }; gaps where a value is missing.
function lineChart(id, label, lines, say, { zero = false, best = false, steps = false, buffer = false } = {}) {
  const host = $(id);
  const good = lines.map((line) => ({ ...line, points: line.xs.map((x, i) => [x, line.ys[i]]).filter((p) => Number.isFinite(p[1])) })).filter((line) => line.points.length > 1);
  if (good.length === 0) { noChart(id); return; }
  host.replaceChildren();
  const xs = good.flatMap((line) => line.points.map((p) => p[0])), ys = good.flatMap((line) => line.points.map((p) => p[1]));
  const high = Math.max(...ys), least = Math.min(...ys), low = zero ? 0 : least - 0.06 * (high - least || 1);
  const x = [Math.min(...xs), Math.max(...xs)];
  const plot = frame(host, label, { x, y: [low, high + (good.length > 1 ? 0.18 : 0.06) * (high - low || 1)] });
  for (const line of good) {
    let path = "";
    line.points.forEach(([px, py], i) => {
      if (steps && i) path += `L${plot.px(px)},${plot.py(line.points[i - 1][1])}`;
      path += `${i ? "L" : "M"}${plot.px(px)},${plot.py(py)}`;
    });
    el(plot.svg, "path", { class: `line ${line.kind ?? ""}`, d: path });
    const top = best ? Math.max(...line.points.map((p) => p[1])) : NaN;
    if (line.points.length <= 40 && !steps) line.points.forEach(([px, py]) => el(plot.svg, "circle", { class: `dot ${line.kind ?? ""} ${py === top ? "best" : ""}`, cx: plot.px(px), cy: plot.py(py), r: py === top ? 5 : 2.4 }));
  }
  if (good.length > 1) good.forEach((line, i) => el(plot.svg, "text", { class: `key ${line.kind}`, x: plot.box.right - 4 - 44 * i, y: plot.box.top + 8, "text-anchor": "end" }, line.name));
  if (buffer) warmupLine(plot, x[1]);
  hover(host, plot, good[0].points.map((p) => p[0]), (i) => say(good[0].points[i][0], good));
}

const at = (line, x) => line.points.reduce((best, p) => (Math.abs(p[0] - x) < Math.abs(best[0] - x) ? p : best))[1];

function birthLine(births, name, kind) {
  const last = data.course.edges[data.course.edges.length - 1];
  const xs = [0, ...births, last];
  return { name, kind, xs, ys: xs.map((_, i) => Math.min(i, births.length)) };
}

function driftChart() {
  if (data.drift.length === 0) { noChart("drift-chart"); return; }
  const most = Math.max(...data.drift.map((d) => d[1]), 1e-6);
  $("drift-chart").replaceChildren(make("ul", { class: "hbars" }, ...data.drift.map(([id, value]) => {
    const bar = make("i"), name = category(id)?.title ?? String(id);
    bar.style.width = `${(100 * Math.max(value, 0)) / most}%`;
    return make("li", {}, make("span", { text: name, title: name }), make("div", {}, bar), make("b", { text: value.toFixed(3) }));
  })));
}

function drawCharts() {
  const { edges, even, fit_known: known, fit_novel: novel } = data.course, mids = middles(edges);
  shareChart();
  lineChart("birth-chart", "Categories seen so far", [birthLine(data.course.born_novel, NEW, "novel"), birthLine(data.course.born_known, "known", "")].filter((l) => l.xs.length > 2),
    (x, lines) => `by image ${number(x)}\n${lines.map((l) => `${l.name} ${number(l.points.filter((p) => p[0] <= x).pop()[1])}`).join(", ")}`, { zero: true, steps: true, buffer: true });
  lineChart("fit-chart", "Mean score over the stream", [{ name: NEW, kind: "novel", xs: mids, ys: novel }, { name: "known", kind: "", xs: mids, ys: known }],
    (x, lines) => `around image ${number(Math.round(x))}\n${lines.map((l) => `${l.name} ${at(l, x).toFixed(3)}`).join(", ")}`, { buffer: true });
  lineChart("even-chart", "Categories in even use over the stream", [{ xs: mids, ys: even }],
    (x, [line]) => `around image ${number(Math.round(x))}\n${number(at(line, x))} categories in even use`, { zero: true, buffer: true });
  lineChart("loss-chart", "Re-alignment loss by epoch", [{ xs: data.losses.map((_, i) => i + 1), ys: data.losses }], (x, [line]) => `epoch ${x}\nloss ${number(at(line, x))}`);
  lineChart("estimate-chart", `Score by number of ${MANY}`, [{ xs: data.estimate.map((p) => p[0]), ys: data.estimate.map((p) => p[1]) }],
    (x, [line]) => `${x} ${MANY}\nsilhouette ${number(at(line, x))}`, { best: true });
  reliabilityChart();
  driftChart();
}

// With labels: how often answers are right, by how sure they were. Without: how sure they were.
function reliabilityChart() {
  const host = $("sure-chart"), bins = data.reliability;
  if (bins.length === 0) { doubtChart(host); return; }
  $("sure-title").textContent = "Reliability";
  $("sure-note").textContent = data.calibrated ? "share of right answers by confidence; on the dashed line confidence means what it says" : "share of right answers, from the most doubtful tenth of the images to the surest; it should rise";
  host.replaceChildren();
  const plot = frame(host, "Share of right answers by confidence", { x: [0, 1], y: [0, 1], format: percent });
  if (data.calibrated) el(plot.svg, "line", { class: "mark", x1: plot.px(0), y1: plot.py(0), x2: plot.px(1), y2: plot.py(1) });
  el(plot.svg, "path", { class: "line", d: bins.map((b, i) => `${i ? "L" : "M"}${plot.px(b[0])},${plot.py(b[1])}`).join("") });
  bins.forEach((b) => el(plot.svg, "circle", { class: "dot", cx: plot.px(b[0]), cy: plot.py(b[1]), r: 3.5 }));
  hover(host, plot, bins.map((b) => b[0]), (i) => `sure ${percent(bins[i][0])}\nright ${percent(bins[i][1])} of ${images(bins[i][2])}`);
}

function doubtChart(host) {
  const counts = new Array(10).fill(0);
  rows.doubt.forEach((d) => { counts[Math.min(9, Math.floor(d * 10))] += 1; });
  host.replaceChildren();
  const plot = frame(host, "Images by doubt", { x: [0, 1], y: [0, Math.max(...counts, 1)] });
  counts.forEach((n, i) => el(plot.svg, "rect", { class: "area-known", x: plot.px(i / 10) + 1, y: plot.py(n), width: plot.px(0.1) - plot.px(0) - 2, height: plot.box.bottom - plot.py(n) }));
  hover(host, plot, counts.map((_, i) => i / 10 + 0.05), (i) => `doubt ${percent(i / 10)} to ${percent((i + 1) / 10)}\n${images(counts[i])}`);
}
