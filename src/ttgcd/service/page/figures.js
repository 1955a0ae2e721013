// Share over the stream, rate over time, and the map with its lasso.
import { html, useEffect, useRef, useState } from "/page/vendor/preact-htm.js";
import { ask } from "/page/api.js";

const W = 560, H = 120;

export function Figures({ stats, nameless }) {
  if (!stats?.images) return html`<p class="quiet">Nothing has arrived yet.</p>`;
  const steps = stats.timeline, width = W / Math.max(steps.length, 1);
  const fastest = Math.max(...stats.rate, 0.1);
  const longest = Math.max(...stats.queue_over_time, 1);
  const line = (values, top) => values.map((v, i) => `${(i / (values.length - 1)) * W},${H - 2 - (v / top) * (H - 8)}`).join(" ");
  return html`
    <dl class="numbers">
      <div><dt>images</dt><dd>${stats.images.toLocaleString()}</dd></div>
      ${nameless ? null : html`<div><dt>known</dt><dd>${stats.known.toLocaleString()}</dd></div>
      <div><dt>novel</dt><dd class="novel">${stats.novel.toLocaleString()}</dd></div>`}
      <div><dt>doubtful</dt><dd>${stats.doubtful.toLocaleString()}</dd></div>
      <div><dt>waiting</dt><dd>${stats.queue.toLocaleString()}</dd></div>
      <div><dt>now, images/s</dt><dd>${(stats.rate.at(-1) || stats.rate.at(-2) || 0).toFixed(1)}</dd></div>
    </dl>
    ${nameless ? null : html`<figure><figcaption>Share of novel images along the stream</figcaption>
      <svg viewBox="0 0 ${W} ${H}" role="img" aria-label="share of novel images along the stream" preserveAspectRatio="none">
        <rect class="known" width=${W} height=${H} />
        ${steps.map((s, i) => { const share = s.novel / Math.max(1, s.known + s.novel); return html`<rect class="novel" x=${i * width} y=${H - share * H} width=${width + 0.5} height=${share * H}><title>images ${s.start} on: ${Math.round(100 * share)}% novel</title></rect>`; })}
      </svg></figure>`}
    <figure><figcaption>Images a second, last ten minutes (highest ${fastest.toFixed(1)})</figcaption>
      <svg viewBox="0 0 ${W} ${H}" role="img" aria-label="images a second in the last ten minutes" preserveAspectRatio="none"><polyline points=${line(stats.rate, fastest)} /></svg></figure>
    <figure><figcaption>Images that wait to be learned from, last ten minutes (most ${longest.toLocaleString()})</figcaption>
      <svg viewBox="0 0 ${W} ${H}" role="img" aria-label="images that wait in the last ten minutes" preserveAspectRatio="none"><polyline points=${line(stats.queue_over_time, longest)} /></svg></figure>`;
}

const colour = (category) => `hsl(${(category * 67) % 360} 75% 55%)`;

export function StarMap({ stream, categories, onLasso, version }) {
  const canvas = useRef(), drawn = useRef({ points: [], path: [] });
  const [told, setTold] = useState("");
  const names = new Map(categories.map((c) => [c.id, c]));
  const draw = () => {
    const node = canvas.current;
    if (!node) return;
    const { points, path } = drawn.current, pen = node.getContext("2d"), size = node.width;
    pen.clearRect(0, 0, size, size);
    for (const p of points) {
      const c = names.get(p.category), novel = c?.kind === "novel";
      pen.fillStyle = novel ? colour(p.category) : "#8a93a3";
      pen.globalAlpha = novel ? 0.95 : 0.45;
      pen.beginPath();
      pen.arc(8 + p.x * (size - 16), 8 + p.y * (size - 16), novel ? 4.5 : 3, 0, 7);
      pen.fill();
    }
    pen.globalAlpha = 1;
    if (path.length > 1) {
      pen.strokeStyle = "#4c6ef5"; pen.lineWidth = 2; pen.beginPath();
      path.forEach(([x, y], i) => (i ? pen.lineTo(x, y) : pen.moveTo(x, y)));
      pen.closePath(); pen.stroke();
    }
  };
  useEffect(() => {
    let gone = false;
    setTold("drawing the map…");
    ask(`/v1/streams/${stream}/map`).then(({ points, projection }) => {
      if (gone) return;
      drawn.current.points = points;
      setTold(points.length ? `${points.length} images by ${projection}; draw around some to pick them` : "No map yet.");
      draw();
    }).catch((error) => setTold(error.message));
    return () => { gone = true; };
  }, [stream, version]);
  useEffect(draw);
  const at = (event) => {
    const box = canvas.current.getBoundingClientRect(), scale = canvas.current.width / box.width;
    return [(event.clientX - box.left) * scale, (event.clientY - box.top) * scale];
  };
  const down = (event) => { event.currentTarget.setPointerCapture(event.pointerId); drawn.current.path = [at(event)]; };
  const move = (event) => { if (drawn.current.path.length && event.buttons) { drawn.current.path.push(at(event)); draw(); } };
  const up = () => {
    const { path, points } = drawn.current, size = canvas.current.width;
    if (path.length > 2) onLasso(points.filter((p) => inside([8 + p.x * (size - 16), 8 + p.y * (size - 16)], path)).map((p) => p.index));
    drawn.current.path = [];
    draw();
  };
  const counted = new Map();
  for (const p of drawn.current.points) counted.set(p.category, (counted.get(p.category) ?? 0) + 1);
  const largest = [...counted].filter(([id]) => names.get(id)?.kind === "novel").sort((a, b) => b[1] - a[1]).slice(0, 14);
  return html`<p class="quiet" role="status">${told}</p>
    <div class="mapped"><canvas class="map" ref=${canvas} width="720" height="720" role="img" aria-label="map of the images; the same images can be picked in the gallery" onPointerDown=${down} onPointerMove=${move} onPointerUp=${up} />
      <ul class="legend" aria-label="colours">${largest.map(([id]) => html`<li key=${id}><i ref=${(node) => { if (node) node.style.background = colour(id); }}></i>${names.get(id).name}</li>`)}${largest.length ? html`<li class="quiet">known classes are grey</li>` : null}</ul></div>`;
}

function inside([x, y], path) {
  let hit = false;
  for (let i = 0, j = path.length - 1; i < path.length; j = i, i += 1) {
    const [ax, ay] = path[i], [bx, by] = path[j];
    if (ay > y !== by > y && x < ((bx - ax) * (y - ay)) / (by - ay) + ax) hit = !hit;
  }
  return hit;
}
