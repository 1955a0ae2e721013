// -- small pictures: cells of sheets, fetched when they come near the screen --------------------
const sheets = data.sheets, perSheet = sheets.columns * sheets.rows;
const havePictures = sheets.at.length > 0;

function startSheets() {
  const style = document.createElement("style");
  document.head.append(style);
  // One rule a sheet: an address inside the page may be long and must not be repeated per picture.
  sheets.at.forEach((at, i) => style.sheet.insertRule(`.sheet-${i}{background-image:url("${at}")}`, i));
}

function place(node, row) {
  const sheet = Math.floor(row / perSheet), cell = row % perSheet;
  const down = Math.ceil(Math.min(perSheet, sheets.size - sheet * perSheet) / sheets.columns);
  const x = cell % sheets.columns, y = Math.floor(cell / sheets.columns);
  node.style.backgroundSize = `${100 * sheets.columns}% ${100 * down}%`;
  node.style.backgroundPosition = `${(100 * x) / (sheets.columns - 1)}% ${down > 1 ? (100 * y) / (down - 1) : 0}%`;
  node.classList.add(`sheet-${sheet}`);
}

const nearScreen = new IntersectionObserver((entries) => {
  for (const entry of entries) {
    if (!entry.isIntersecting) continue;
    nearScreen.unobserve(entry.target);
    place(entry.target, Number(entry.target.dataset.row));
  }
}, { rootMargin: "300px" });

const fit = (row) => (seedRows.has(row) ? "the group began with it" : `score ${rows.score[row].toFixed(3)}`);
const about = (row) => `${rows.id[row]}\n${fit(row)}, doubt ${percent(rows.doubt[row])}`;

// A button with the picture of a row; its name where there is no picture.
function thumb(row, open) {
  const drawn = havePictures && !missing.has(row);
  const node = make("button", {
    type: "button", class: drawn ? "thumb" : "thumb words", "data-row": row, title: about(row), "aria-label": rows.id[row],
    on: { click: (event) => open(row, event) },
  });
  if (drawn) nearScreen.observe(node);
  else node.textContent = baseName(rows.id[row]);
  return node;
}

// -- orders of a list of rows -------------------------------------------------------------------
// A seed's score of 1 is no sign of being typical: it counts as the middle of its group.
function fitOf(list) {
  const plain = list.filter((row) => !seedRows.has(row)).map((row) => rows.score[row]).sort((a, b) => a - b);
  const middle = plain.length ? plain[plain.length >> 1] : 0;
  return (row) => (seedRows.has(row) ? middle : rows.score[row]);
}
const ORDERS = {
  typical: (list) => { const of = fitOf(list); return [...list].sort((a, b) => of(b) - of(a) || a - b); },
  atypical: (list) => { const of = fitOf(list); return [...list].sort((a, b) => of(a) - of(b) || a - b); },
  doubt: (list) => [...list].sort((a, b) => rows.doubt[b] - rows.doubt[a] || rows.score[a] - rows.score[b]),
  name: (list) => [...list].sort((a, b) => (rows.id[a] < rows.id[b] ? -1 : 1)),
};

// The images of a category that are least like it, or that the method doubted most.
function unsure(list, count) {
  const half = Math.ceil(count / 2);
  const low = ORDERS.atypical(list).slice(0, half);
  const rest = ORDERS.doubt(list).filter((row) => !low.includes(row)).slice(0, count - low.length);
  return [...low, ...rest];
}
