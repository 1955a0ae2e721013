// -- questions: what a look at the pictures decides, the most useful first ----------------------
const ASKED = 4; // at once
const settled = new Set();

const keyOf = ([ask, ids, row]) => `${ask} ${ids.join(" ")} ${row}`;
const lives = (id) => { const c = category(id); return c && c.into === null && !c.hidden && c.rows.length > 0; };

// Open as long as nobody answered and no edit has made it pointless.
function openQuestions() {
  return data.questions.filter((q) => !settled.has(keyOf(q)) && q[1].every(lives) && (q[2] === null || world.of[q[2]] === q[1][0]));
}

function drawQuestions() {
  const open = openQuestions();
  $("questions").hidden = open.length === 0 || wordsOf().length > 0;
  $("to-questions").hidden = open.length === 0;
  $("to-questions").textContent = `${open.length} ${open.length === 1 ? "question" : "questions"}`;
  $("questions").querySelector("h2 span").textContent = open.length > ASKED ? `${ASKED} of ${open.length}` : "";
  $("questions").querySelector(".cards").replaceChildren(...open.slice(0, ASKED).map((q) => questionCard(q)));
}

function questionCard(q) {
  const [ask, ids, row] = q;
  const done = () => { settled.add(keyOf(q)); drawQuestions(); };
  const button = (text, run, strong = false) => make("button", { type: "button", class: strong ? "button strong" : "button", text, on: { click: run } });
  const card = { same: sameCard, mixed: mixedCard, border: borderCard }[ask](ids.map(category), row, button, done);
  return make("article", { class: "card question" }, ...card);
}

function side(list, all, name) {
  return [make("p", { class: "name", text: name }), make("div", { class: "side" }, ...list.map((row) => thumb(row, () => openPicture(all, all.indexOf(row)))))];
}

const named = (c) => (c.guess ? `${c.title} ${c.name}` : c.title);

function sameCard([one, other], _row, button, done) {
  // A known class keeps its name; of two new ones the larger takes the smaller.
  const [into, from] = !one.novel || (other.novel && one.count >= other.count) ? [one, other] : [other, one];
  return [
    make("h3", { text: "The same?" }),
    ...side(into.rows.slice(0, 4), into.rows, named(into)), ...side(from.rows.slice(0, 4), from.rows, named(from)),
    make("div", { class: "tools" }, button("Same: merge", () => addEdit({ op: "merge", category: from.id, into: into.id }, `Merged into ${into.title}.`), true), button("Different", done)),
  ];
}

function mixedCard([c], _row, button, done) {
  return [
    make("h3", { text: "Two things in one?" }),
    ...side(c.rows.slice(0, 4), c.rows, named(c)), ...side(ORDERS.atypical(c.rows).slice(0, 4), c.rows, "least typical"),
    make("div", { class: "tools" }, button("Sort out", () => openGallery(c.id, "atypical"), true), button("One thing", done)),
  ];
}

function borderCard([here, there], row, button, done) {
  const move = () => addEdit({ op: "move", images: [rows.id[row]], into: there.id }, `Moved to ${there.title}.`);
  return [
    make("h3", { text: "Which one?" }),
    make("p", { class: "name", text: baseName(rows.id[row]) }),
    make("div", { class: "side one" }, thumb(row, () => openPicture([row], 0))),
    ...side(here.rows.filter((r) => r !== row).slice(0, 4), here.rows, named(here)),
    ...side(there.rows.slice(0, 4), there.rows, named(there)),
    make("div", { class: "tools" }, button(`${here.title}: right`, done), button(there.title, move), button("Other …", () => moveRows([row]))),
  ];
}

function startQuestions() {
  $("to-questions").addEventListener("click", () => {
    if (wordsOf().length) { $("filter").value = ""; drawAll(); }
    $("questions").scrollIntoView();
  });
}
