"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const byId = new Map(data.categories.map((c) => [c.id, c]));
  const $ = (id) => document.getElementById(id);
  const FIRST = 24; // cards shown at once in a section

  // -- cards: a few at first, all on demand, any by search -------------------------------------
  const sections = [...document.querySelectorAll(".categories")].map((section) => ({
    section, cards: [...section.querySelectorAll(".card")],
    more: section.querySelector(".more"), limit: FIRST,
  }));

  function filterCards() {
    const words = $("filter").value.toLowerCase().split(/\s+/).filter(Boolean);
    let matches = 0;
    for (const part of sections) {
      const fitting = part.cards.filter((c) => words.every((w) => c.dataset.search.includes(w)));
      matches += fitting.length;
      const shown = new Set(fitting.slice(0, part.limit));
      part.cards.forEach((c) => c.classList.toggle("away", !shown.has(c)));
      const left = fitting.length - shown.size;
      part.more.hidden = left <= 0;
      part.more.textContent = `Show ${Math.min(left, 96)} more of ${left}`;
    }
    $("matches").textContent = words.length ? `${matches} found` : "";
  }
  for (const part of sections) {
    part.more.addEventListener("click", () => { part.limit += 96; filterCards(); });
  }
  $("filter").addEventListener("input", () => {
    sections.forEach((part) => { part.limit = FIRST; });
    filterCards();
  });
  filterCards();

  // -- small charts ----------------------------------------------------------------------------
  const SVG = "http://www.w3.org/2000/svg";
  function el(parent, name, attributes, text) {
    const node = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
    if (text !== undefined) node.textContent = text;
    parent.append(node);
    return node;
  }
  const number = (v) => v.toLocaleString("en", { maximumFractionDigits: v < 10 ? 3 : 1 });
  const percent = (v) => `${(100 * v).toFixed(v > 0 && v < 0.1 ? 1 : 0)}%`;

  function ticks(low, high, about) {
    const raw = (high - low) / about || 1;
    const power = 10 ** Math.floor(Math.log10(raw));
    const step = [1, 2, 5, 10].map((m) => m * power).find((s) => s >= raw);
    const out = [];
    for (let t = Math.ceil(low / step) * step; t <= high + step * 1e-6; t += step) out.push(t);
    return out;
  }

  function frame(host, label, { x, y, format, height, unit }) {
    const width = Math.max(260, host.clientWidth - 24);
    const box = { left: 44, right: width - 8, top: 8, bottom: height - 26 };
    const svg = el(host, "svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label });
    const px = (v) => box.left + (box.right - box.left) * (x[1] > x[0] ? (v - x[0]) / (x[1] - x[0]) : 0.5);
    const py = (v) => box.bottom - (box.bottom - box.top) * (y[1] > y[0] ? (v - y[0]) / (y[1] - y[0]) : 0.5);
    for (const t of ticks(y[0], y[1], 4)) {
      el(svg, "line", { class: "grid", x1: box.left, x2: box.right, y1: py(t), y2: py(t) });
      el(svg, "text", { x: box.left - 6, y: py(t) + 4, "text-anchor": "end" }, format(t));
    }
    for (const t of ticks(x[0], x[1], width > 500 ? 7 : 4)) {
      if (unit && !Number.isInteger(t)) continue;
      el(svg, "text", { x: px(t), y: height - 6, "text-anchor": px(t) > box.right - 20 ? "end" : "middle" }, number(t));
    }
    return { svg, box, px, py };
  }

  function hover(host, plot, xs, say) {
    const tip = document.createElement("div");
    tip.className = "tip";
    tip.hidden = true;
    host.append(tip);
    const cursor = el(plot.svg, "line", { class: "cursor", y1: plot.box.top, y2: plot.box.bottom, visibility: "hidden" });
    plot.svg.addEventListener("pointermove", (event) => {
      const bounds = plot.svg.getBoundingClientRect();
      const at = (event.clientX - bounds.left) * plot.svg.viewBox.baseVal.width / bounds.width;
      let best = 0;
      xs.forEach((v, i) => { if (Math.abs(plot.px(v) - at) < Math.abs(plot.px(xs[best]) - at)) best = i; });
      const where = plot.px(xs[best]);
      cursor.setAttribute("x1", where);
      cursor.setAttribute("x2", where);
      cursor.setAttribute("visibility", "visible");
      tip.hidden = false;
      tip.textContent = say(best);
      const left = where * bounds.width / plot.svg.viewBox.baseVal.width + 24;
      tip.style.left = `${left + tip.offsetWidth > host.clientWidth ? left - tip.offsetWidth - 28 : left}px`;
      tip.style.top = "1rem";
    });
    plot.svg.addEventListener("pointerleave", () => {
      tip.hidden = true;
      cursor.setAttribute("visibility", "hidden");
    });
  }

  function shareChart() {
    const host = $("share-chart"), t = data.timeline, n = t.start.length;
    if (n === 0) { $("course").hidden = true; return; }
    host.replaceChildren();
    const share = t.start.map((_, i) => t.novel[i] / (t.novel[i] + t.known[i]));
    const plot = frame(host, "Share of new samples over the stream", {
      x: [t.start[0], t.end[n - 1]], y: [0, 1], format: percent, height: host.clientWidth > 600 ? 240 : 200, unit: true,
    });
    // Steps, not slopes: each value speaks for its whole stretch.
    let top = "";
    share.forEach((v, i) => { top += `L${plot.px(t.start[i])},${plot.py(v)}L${plot.px(t.end[i])},${plot.py(v)}`; });
    const { left, right, bottom } = { left: plot.px(t.start[0]), right: plot.px(t.end[n - 1]), bottom: plot.box.bottom };
    el(plot.svg, "path", { class: "area-known", d: `M${left},${plot.box.top}${top}L${right},${plot.box.top}Z`, opacity: 0.85 });
    el(plot.svg, "path", { class: "area-novel", d: `M${left},${bottom}${top}L${right},${bottom}Z`, opacity: 0.92 });
    const mean = share.reduce((a, b) => a + b, 0) / n;
    const label = (text, from, to) => {
      if (to - from > 0.12) el(plot.svg, "text", { class: "area-label", x: left + 12, y: plot.py((from + to) / 2) + 5 }, text);
    };
    label("new", 0, mean === 0 ? 0 : share[0]);
    label("known", share[0], 1);
    const mids = t.start.map((s, i) => (s + t.end[i]) / 2);
    hover(host, plot, mids, (i) => `samples ${number(t.start[i])} to ${number(t.end[i])}\nnew ${percent(share[i])}, known ${percent(1 - share[i])}`);
  }

  function lineChart(id, label, xs, ys, say, options = {}) {
    const host = $(id);
    const good = ys.map((v, i) => i).filter((i) => Number.isFinite(ys[i]));
    if (good.length < 2) { host.closest("figure").hidden = true; return; }
    host.replaceChildren();
    const gx = good.map((i) => xs[i]), gy = good.map((i) => ys[i]);
    const high = Math.max(...gy), least = Math.min(...gy);
    const low = options.zero ? 0 : least - 0.06 * (high - least || 1);
    const plot = frame(host, label, {
      x: [Math.min(...gx), Math.max(...gx)], y: [low, high + 0.06 * (high - low || 1)], format: number, height: 180, unit: true,
    });
    el(plot.svg, "path", { class: "line", d: gx.map((v, i) => `${i ? "L" : "M"}${plot.px(v)},${plot.py(gy[i])}`).join("") });
    const best = options.best ? gy.indexOf(high) : -1;
    if (gx.length <= 40) gx.forEach((v, i) => el(plot.svg, "circle", { class: i === best ? "dot best" : "dot", cx: plot.px(v), cy: plot.py(gy[i]), r: i === best ? 5 : 2.6 }));
    hover(host, plot, gx, (i) => say(gx[i], gy[i]));
  }

  function driftChart() {
    const host = $("drift-chart");
    if (data.drift.length === 0) { host.closest("figure").hidden = true; return; }
    const list = document.createElement("ul");
    list.className = "hbars";
    const most = Math.max(...data.drift.map((d) => d[1]), 1e-6);
    for (const [name, value] of data.drift.slice(0, 8)) {
      const item = document.createElement("li"), label = document.createElement("span");
      const track = document.createElement("div"), bar = document.createElement("i"), said = document.createElement("b");
      label.textContent = name;
      label.title = name;
      bar.style.width = `${100 * Math.max(value, 0) / most}%`;
      said.textContent = value.toFixed(3);
      track.append(bar);
      item.append(label, track, said);
      list.append(item);
    }
    host.replaceChildren(list);
  }

  function drawCharts() {
    const t = data.timeline;
    shareChart();
    lineChart("entropy-chart", "Categories in even use over the stream", t.start.map((s, i) => (s + t.end[i]) / 2), t.entropy.map(Math.exp),
      (x, y) => `around sample ${number(Math.round(x))}\n${number(y)} categories in even use`, { zero: true });
    lineChart("loss-chart", "Re-alignment loss by epoch", data.losses.map((_, i) => i + 1), data.losses, (x, y) => `epoch ${x}\nloss ${number(y)}`);
    lineChart("estimate-chart", "Score by number of new categories", data.estimate.map((p) => p[0]), data.estimate.map((p) => p[1]),
      (x, y) => `${x} new categories\nscore ${number(y)}`, { best: true });
    driftChart();
  }

  // -- the map ---------------------------------------------------------------------------------
  // Okabe and Ito's colours, told apart by most colour-blind readers; yellow left out for contrast.
  const COLOURS = ["#d55e00", "#0072b2", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#8c564b", "#7f7fd5"];
  const canvas = $("map-canvas");
  let mode = "kind", highlighted = null, drawn = [];

  const seen = new Map();
  data.points.forEach((p) => seen.set(p[2], (seen.get(p[2]) || 0) + 1));
  const onMap = data.categories.filter((c) => seen.has(c.id));
  const coloured = new Map(onMap.slice(0, COLOURS.length).map((c, i) => [c.id, COLOURS[i]]));
  const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const isNovel = (id) => byId.get(id)?.novel ?? false;

  function colourOf(id) {
    if (highlighted !== null) return id === highlighted ? css(isNovel(id) ? "--novel" : "--known") : css("--faint");
    if (mode === "kind") return css(isNovel(id) ? "--novel" : "--known");
    return coloured.get(id) ?? css("--faint");
  }

  function mark(ctx, x, y, r, novel) {
    ctx.beginPath();
    if (novel) {
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
    const radius = data.points.length > 800 ? 2.8 : 3.8;
    const palette = new Map(onMap.map((c) => [c.id, colourOf(c.id)]));
    drawn = data.points.map(([x, y, id, name]) => ({ x: pad + x * (width - 2 * pad), y: pad + (1 - y) * (height - 2 * pad), id, name }));
    const quiet = css("--faint");
    const order = [...drawn].sort((a, b) => (palette.get(b.id) === quiet) - (palette.get(a.id) === quiet));
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
    const named = highlighted !== null ? [byId.get(highlighted)] : mode === "kind" ? onMap.filter((c) => c.novel).slice(0, 12) : onMap.slice(0, COLOURS.length);
    const taken = [];
    ctx.font = "600 13px system-ui, sans-serif";
    ctx.textAlign = "center";
    ctx.lineJoin = "round";
    for (const c of named) {
      const own = drawn.filter((p) => p.id === c.id);
      if (own.length === 0) continue;
      const middle = (key) => own.map((p) => p[key]).sort((a, b) => a - b)[own.length >> 1];
      const text = c.name.length > 26 ? `${c.name.slice(0, 25)}…` : c.name;
      const half = ctx.measureText(text).width / 2;
      const x = Math.min(Math.max(middle("x"), half + 6), width - half - 6), y = Math.min(Math.max(middle("y"), 20), height - 12);
      if (taken.some((t) => Math.abs(t.y - y) < 18 && Math.abs(t.x - x) < t.half + half + 6)) continue;
      taken.push({ x, y, half });
      ctx.lineWidth = 4;
      ctx.strokeStyle = css("--card");
      ctx.strokeText(text, x, y);
      ctx.fillStyle = css("--ink");
      ctx.fillText(text, x, y);
    }
  }

  function drawLegend() {
    const entries = highlighted !== null
      ? [[byId.get(highlighted).name, colourOf(highlighted), isNovel(highlighted)], ["everything else", css("--faint"), false]]
      : mode === "kind" ? [["known class", css("--known"), false], ["new category", css("--novel"), true]]
      : onMap.slice(0, COLOURS.length).map((c) => [c.name, coloured.get(c.id), c.novel])
        .concat(onMap.length > COLOURS.length ? [[`${onMap.length - COLOURS.length} others`, css("--faint"), false]] : []);
    $("map-legend").replaceChildren(...entries.map(([text, colour, novel]) => {
      const item = document.createElement("li");
      const svg = el(item, "svg", { width: 14, height: 14, viewBox: "0 0 14 14", "aria-hidden": "true" });
      if (novel) el(svg, "path", { d: "M7,1L13,12H1Z", fill: colour });
      else el(svg, "circle", { cx: 7, cy: 7, r: 5, fill: colour });
      item.append(text);
      return item;
    }));
  }

  function redrawMap() { drawMap(); drawLegend(); }

  function highlight(id) {
    highlighted = id;
    $("highlight").value = id === null ? "" : String(id);
    redrawMap();
  }

  function startMap() {
    if (data.points.length === 0) { $("map-tools").hidden = true; $("map-frame").hidden = true; $("map-legend").hidden = true; return; }
    for (const c of onMap) {
      const option = document.createElement("option");
      option.value = String(c.id);
      option.textContent = `${c.name}${c.novel ? " (new)" : ""}`;
      $("highlight").append(option);
    }
    $("highlight").addEventListener("change", (event) => highlight(event.target.value === "" ? null : Number(event.target.value)));
    for (const button of document.querySelectorAll(".toggle button")) {
      button.addEventListener("click", () => {
        mode = button.dataset.mode;
        document.querySelectorAll(".toggle button").forEach((b) => b.setAttribute("aria-pressed", String(b === button)));
        highlight(null);
      });
    }
    for (const card of document.querySelectorAll(".card")) {
      const id = Number(card.dataset.id);
      if (!seen.has(id)) continue;
      const button = document.createElement("button");
      button.type = "button";
      button.className = "to-map";
      button.textContent = "show on map";
      button.addEventListener("click", () => { highlight(id); $("map").scrollIntoView(); });
      card.querySelector("footer").append(button);
    }
    const tip = $("map-tip");
    canvas.addEventListener("pointermove", (event) => {
      const bounds = canvas.getBoundingClientRect();
      const x = event.clientX - bounds.left, y = event.clientY - bounds.top;
      let best = null, least = 144;
      for (const p of drawn) {
        const distance = (p.x - x) ** 2 + (p.y - y) ** 2;
        if (distance < least) { least = distance; best = p; }
      }
      tip.hidden = best === null;
      if (best === null) return;
      tip.textContent = `${byId.get(best.id)?.name ?? best.id}\n${best.name}`;
      tip.style.left = `${best.x + 14 + tip.offsetWidth > bounds.width ? Math.max(4, best.x - tip.offsetWidth - 14) : best.x + 14}px`;
      tip.style.top = `${Math.max(4, Math.min(best.y + 10, bounds.height - tip.offsetHeight - 6))}px`;
    });
    canvas.addEventListener("pointerleave", () => { tip.hidden = true; });
    redrawMap();
  }

  drawCharts();
  startMap();
  if ([...document.querySelectorAll(".charts figure")].every((f) => f.hidden)) document.querySelector(".charts").hidden = true;
  const redraw = () => { drawCharts(); if (data.points.length) redrawMap(); };
  let waiting = 0, lastWidth = window.innerWidth;
  window.addEventListener("resize", () => {
    if (window.innerWidth === lastWidth) return; // phones resize when the address bar hides
    lastWidth = window.innerWidth;
    clearTimeout(waiting);
    waiting = setTimeout(redraw, 120);
  });
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
})();
