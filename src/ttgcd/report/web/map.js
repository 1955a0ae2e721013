// -- the map: near points look alike to the model -----------------------------------------------
// Okabe and Ito's colours, told apart by most colour-blind readers; yellow left out for contrast.
const COLOURS = ["#d55e00", "#0072b2", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#8c564b", "#7f7fd5"];
const LABELS = 14;
const canvas = $("map-canvas");
const anyKnown = data.categories.some((c) => !c.novel);
const map = { mode: anyKnown ? "kind" : "category", highlighted: null, drawn: [], there: new Map(), largest: [] };

const isNovel = (id) => category(id)?.novel ?? false;
const onMap = (id) => map.there.has(id);

function countPoints() {
  map.there = new Map();
  for (const [, , row] of data.points) map.there.set(world.of[row], (map.there.get(world.of[row]) ?? 0) + 1);
  map.largest = bySize([...map.there.keys()].map(category).filter((c) => c && !c.hidden));
}

function colourOf(id) {
  if (map.highlighted !== null) return id === map.highlighted ? css(isNovel(id) ? "--novel" : "--known") : css("--faint");
  if (map.mode === "kind") return css(isNovel(id) ? "--novel" : "--known");
  const place = map.largest.findIndex((c) => c.id === id);
  return COLOURS[place] ?? css("--faint");
}

// Two shapes where there are two kinds.
function mark(ctx, x, y, r, novel) {
  ctx.beginPath();
  if (novel && anyKnown) {
    ctx.moveTo(x, y - 1.35 * r);
    ctx.lineTo(x + 1.25 * r, y + 0.95 * r);
    ctx.lineTo(x - 1.25 * r, y + 0.95 * r);
    ctx.closePath();
  } else ctx.arc(x, y, r, 0, 2 * Math.PI);
  ctx.fill();
}

function drawMap() {
  const width = canvas.parentElement.clientWidth;
  const height = Math.round(Math.min(width * (width < 600 ? 0.95 : 0.55), 620));
  const dots = window.devicePixelRatio || 1, pad = 18;
  canvas.width = width * dots;
  canvas.height = height * dots;
  canvas.style.height = `${height}px`;
  const ctx = canvas.getContext("2d");
  ctx.scale(dots, dots);
  const radius = data.points.length > 800 ? 2.8 : 3.8, quiet = css("--faint");
  const palette = new Map([...map.there.keys()].map((id) => [id, colourOf(id)]));
  map.drawn = data.points.map(([x, y, row]) => ({ x: pad + x * (width - 2 * pad), y: pad + (1 - y) * (height - 2 * pad), id: world.of[row], row }));
  const order = [...map.drawn].sort((a, b) => (palette.get(b.id) === quiet) - (palette.get(a.id) === quiet));
  for (const point of order) {
    const colour = palette.get(point.id);
    ctx.fillStyle = colour;
    ctx.globalAlpha = colour === quiet ? 0.55 : 0.8;
    mark(ctx, point.x, point.y, radius, isNovel(point.id));
  }
  ctx.globalAlpha = 1;
  nameGroups(ctx, width, height);
}

// Names stand where their points are, largest groups first, and never over one another.
function nameGroups(ctx, width, height) {
  const named = map.highlighted !== null ? [category(map.highlighted)] : map.largest.slice(0, width < 600 ? 8 : LABELS);
  const taken = [];
  ctx.font = "600 13px system-ui, sans-serif";
  ctx.textAlign = "center";
  ctx.lineJoin = "round";
  for (const c of named) {
    const own = map.drawn.filter((p) => p.id === c.id);
    if (own.length === 0) continue;
    const middle = (key) => own.map((p) => p[key]).sort((a, b) => a - b)[own.length >> 1];
    const text = c.title.length > 26 ? `${c.title.slice(0, 25)}…` : c.title;
    const half = ctx.measureText(text).width / 2;
    const x = Math.min(Math.max(middle("x"), half + 6), width - half - 6), y = Math.min(Math.max(middle("y"), 20), height - 12);
    if (taken.some((t) => Math.abs(t.y - y) < 18 && Math.abs(t.x - x) < t.half + half + 6)) continue;
    taken.push({ x, y, half });
    ctx.lineWidth = 4;
    ctx.strokeStyle = css("--card");
    ctx.strokeText(text, x, y);
    ctx.fillStyle = c.novel ? css("--novel") : css("--known");
    ctx.fillText(text, x, y);
  }
}

function drawLegend() {
  const others = map.largest.length - COLOURS.length;
  const entries = map.highlighted !== null
    ? [[category(map.highlighted).title, colourOf(map.highlighted), isNovel(map.highlighted)], ["everything else", css("--faint"), false]]
    : map.mode === "kind" ? [["known class", css("--known"), false], [data.groups ? "group" : "new category", css("--novel"), true]]
    : map.largest.slice(0, COLOURS.length).map((c, i) => [c.title, COLOURS[i], c.novel]).concat(others > 0 ? [[`${others} others`, css("--faint"), false]] : []);
  $("map-legend").replaceChildren(...entries.map(([text, colour, novel]) => {
    const item = make("li");
    const svg = el(item, "svg", { width: 14, height: 14, viewBox: "0 0 14 14", "aria-hidden": "true" });
    if (novel && anyKnown) el(svg, "path", { d: "M7,1L13,12H1Z", fill: colour });
    else el(svg, "circle", { cx: 7, cy: 7, r: 5, fill: colour });
    item.append(text);
    return item;
  }));
}

function redrawMap() {
  if (data.points.length === 0) return;
  countPoints();
  if (map.highlighted !== null && !onMap(map.highlighted)) map.highlighted = null;
  const options = map.largest.map((c) => make("option", { value: c.id, text: `${c.title}${c.novel && !data.groups ? " (new)" : ""}` }));
  $("highlight").replaceChildren(make("option", { value: "", text: "nothing" }), ...options);
  $("highlight").value = map.highlighted === null ? "" : String(map.highlighted);
  drawMap();
  drawLegend();
}

function highlight(id) { map.highlighted = id; redrawMap(); }

function nearest(event) {
  const bounds = canvas.getBoundingClientRect(), x = event.clientX - bounds.left, y = event.clientY - bounds.top;
  let best = null, least = 196;
  for (const p of map.drawn) {
    const distance = (p.x - x) ** 2 + (p.y - y) ** 2;
    if (distance < least) { least = distance; best = p; }
  }
  return best;
}

function point(event) {
  const tip = $("map-tip"), best = nearest(event);
  tip.hidden = best === null;
  canvas.style.cursor = best === null ? "" : "pointer";
  if (best === null) return;
  const picture = make("div", { class: "tip-picture" });
  if (havePictures && !missing.has(best.row)) place(picture, best.row);
  else picture.hidden = true;
  tip.replaceChildren(picture, make("b", { text: category(best.id).title }), make("span", { text: baseName(rows.id[best.row]) }));
  const width = canvas.clientWidth, height = canvas.clientHeight;
  tip.style.left = `${best.x + 14 + tip.offsetWidth > width ? Math.max(4, best.x - tip.offsetWidth - 14) : best.x + 14}px`;
  tip.style.top = `${Math.max(4, Math.min(best.y + 10, height - tip.offsetHeight - 6))}px`;
}

function startMap() {
  if (data.points.length === 0) { for (const id of ["map-tools", "map-frame", "map-legend"]) $(id).hidden = true; return; }
  document.querySelector("#map-tools .toggle").hidden = !anyKnown; // without two kinds there is one way to colour
  $("highlight").addEventListener("change", (event) => highlight(event.target.value === "" ? null : Number(event.target.value)));
  for (const button of document.querySelectorAll("#map-tools .toggle button")) {
    button.addEventListener("click", () => {
      map.mode = button.dataset.mode;
      document.querySelectorAll("#map-tools .toggle button").forEach((b) => b.setAttribute("aria-pressed", String(b === button)));
      highlight(null);
    });
  }
  canvas.addEventListener("pointermove", point);
  canvas.addEventListener("pointerleave", () => { $("map-tip").hidden = true; });
  canvas.addEventListener("click", (event) => {
    const best = nearest(event);
    if (best === null) return;
    const list = category(best.id).rows;
    openPicture(list, list.indexOf(best.row));
  });
}
