// The wall of categories.
import { html, useLayoutEffect, useRef, useState } from "/page/vendor/preact-htm.js";
import { picture } from "/page/api.js";

export const Picture = ({ stream, index, size = 96, label = "" }) =>
  html`<img loading="lazy" decoding="async" src=${picture(stream, index, size)} alt=${label} width=${size} height=${size} />`;

// While a card is being named or dragged, the others keep their places: a card that moves loses its
// focus, and what was typed with it.
export function Wall({ stream, nameless, categories, chosen, onChoose, onOpen, onRename, onMerge, filter }) {
  const [held, setHeld] = useState(null), [dragged, setDragged] = useState(null);
  const places = useRef(new Map());
  const wanted = filter.trim().toLowerCase();
  const shown = categories.filter((c) => !c.hidden && c.merged_into == null && c.count > 0
    && (!wanted || c.name.toLowerCase().includes(wanted)));
  const before = (c) => places.current.get(c.id) ?? Infinity;
  const byCount = (a, b) => b.count - a.count || a.id - b.id;
  const still = dragged !== null || shown.some((c) => c.id === held);
  const sorted = (kind) => shown.filter((c) => c.kind === kind)
    .sort((a, b) => (still && before(a) !== before(b) ? before(a) - before(b) : byCount(a, b)));
  const novel = sorted("novel"), known = sorted("known");
  places.current = new Map([...novel, ...known].map((c, place) => [c.id, place]));
  const card = (c) => html`<${Card} key=${c.id} ...${{ stream, c, chosen, onChoose, onOpen, onRename, onMerge, held, setHeld, dragged, setDragged }} />`;
  const part = (title, list, note) => html`
    <section aria-label=${title}>
      <h2>${title} <small>${list.length}</small></h2>
      ${list.length ? html`<ul class="wall">${list.map(card)}</ul>` : html`<p class="quiet">${note}</p>`}
    </section>`;
  const none = wanted ? `No category's name holds “${filter.trim()}”.` : null;
  if (nameless) return part("Groups", novel, none ?? "No group yet: they appear when the warm-up is over.");
  return html`${part("Novel", novel, none ?? "No novel category yet: they appear when the warm-up is over.")}${part("Known", known, none ?? "No image yet.")}`;
}

function Card({ stream, c, chosen, onChoose, onOpen, onRename, onMerge, held, setHeld, dragged, setDragged }) {
  const picked = chosen.has(c.id), naming = held === c.id, novel = c.kind === "novel";
  const [over, setOver] = useState(false), button = useRef(), back = useRef(false);
  useLayoutEffect(() => { if (!naming && back.current) { back.current = false; button.current?.focus(); } }, [naming]);
  const named = (name, byKey) => {
    back.current = byKey;
    setHeld(null);
    if (name && name !== c.name) onRename(c.id, name);
  };
  // A novel category may be dropped on any other; the one that is dropped is merged into it.
  const takes = dragged !== null && dragged.id !== c.id;
  const drag = {
    draggable: novel && !naming,
    onDragStart: (e) => { e.dataTransfer.setData("text/x-ttgcd-category", String(c.id)); e.dataTransfer.effectAllowed = "move"; setDragged(c); },
    onDragEnd: () => setDragged(null),
    onDragOver: (e) => { if (takes) { e.preventDefault(); e.stopPropagation(); setOver(true); } },
    onDragLeave: (e) => { if (!e.currentTarget.contains(e.relatedTarget)) setOver(false); },
    onDrop: (e) => { if (takes) { e.preventDefault(); e.stopPropagation(); setOver(false); setDragged(null); onMerge(dragged.id, c.id); } },
  };
  return html`<li class=${`card ${c.kind} ${picked ? "picked" : ""} ${takes && over ? "target" : ""} ${dragged?.id === c.id ? "dragged" : ""}`} data-category=${c.id} ...${drag}>
    <button class="pictures" onClick=${() => onOpen(c.id)} aria-label=${`open ${c.name}, ${c.count} images`}>
      ${c.exemplars.slice(0, 4).map((i) => html`<${Picture} key=${i} stream=${stream} index=${i} />`)}
    </button>
    <div class="line">
      ${naming ? html`<${NameBox} name=${c.name} onDone=${named} />`
        : html`<button class="name" ref=${button} disabled=${!novel} title=${novel ? `${c.name}: rename` : c.name} onClick=${() => setHeld(c.id)}>${c.name}</button>`}
      <span class="count">${c.count.toLocaleString()}</span>
      ${novel ? html`<input type="checkbox" checked=${picked} onChange=${() => onChoose(c.id)} aria-label=${`select ${c.name}`} />` : null}
    </div>
    ${novel && !c.named && c.good_name ? html`<div class="suggested">
      <button class="chip" onClick=${() => onRename(c.id, c.good_name)} title=${`name it ${c.good_name}`}>${c.good_name}?</button></div>` : null}
  </li>`;
}

// What is typed stays typed, however often the wall is drawn meanwhile. It has the focus before the
// next key arrives.
function NameBox({ name, onDone }) {
  const box = useRef(), ended = useRef(false), [text, setText] = useState(name);
  useLayoutEffect(() => { box.current.focus(); box.current.select(); }, []);
  const end = (said, byKey) => { if (!ended.current) { ended.current = true; onDone(said, byKey); } };
  const key = (event) => {
    if (event.isComposing || !["Enter", "Escape"].includes(event.key)) return;
    event.preventDefault(); // or the button that gets the focus back is pressed as well
    end(event.key === "Enter" ? event.target.value.trim() : null, true);
  };
  return html`<input class="naming" ref=${box} value=${text} maxlength="200" aria-label="new name" onInput=${(e) => setText(e.target.value)} onKeyDown=${key} onBlur=${(e) => end(e.target.value.trim(), false)} />`;
}
