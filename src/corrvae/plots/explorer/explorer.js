"use strict";
(() => {
const get = (id) => document.getElementById(id);
const facts = JSON.parse(get("facts").textContent);
const n = facts.ids.length;

// ---- data: arrays are decoded when they are first needed

const arrays = new Map();
function block(name) {
  if (!arrays.has(name)) {
    const element = get(`block-${name}`);
    if (!element) return null;
    const text = atob(element.textContent);
    const bytes = new Uint8Array(text.length);
    for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
    element.remove();
    arrays.set(name, new globalThis[element.dataset.kind](bytes.buffer));
  }
  return arrays.get(name);
}
const places = block("places"), spread = block("spread"), clusters = block("clusters");

let adjacency = null;
function linksOf(i) {
  if (!adjacency) {
    const edges = block("edges"), begin = new Uint32Array(n + 1), ends = new Uint32Array(edges.length);
    const doubts = block("doubts"), doubted = new Uint8Array(edges.length);
    for (const end of edges) begin[end + 1]++;
    for (let k = 0; k < n; k++) begin[k + 1] += begin[k];
    const next = begin.slice(0, n);
    for (let e = 0; e < edges.length; e += 2) {
      for (const [i, j] of [[edges[e], edges[e + 1]], [edges[e + 1], edges[e]]]) {
        if (doubts) doubted[next[i]] = doubts[e / 2];
        ends[next[i]++] = j;
      }
    }
    adjacency = { begin, ends, doubted };
  }
  return adjacency.ends.subarray(adjacency.begin[i], adjacency.begin[i + 1]);
}
const degree = (i) => linksOf(i).length;
// Links of a point that adaptive forests hardly use: the data do not support them.
const doubtedOf = (i) => linksOf(i).filter((_, k) => adjacency.doubted[adjacency.begin[i] + k]);

const BLOCKS = ["neighbors", "scores", "probabilities", "correlations", "links", "link_probabilities", "typical",
  "amounts", "items", "item_scores"];
const row = (name, i) => {
  const values = block(name);
  return values && Array.from(values.subarray(i * values.length / n, (i + 1) * values.length / n));
};
async function detailsOf(i) {
  if (facts.served) return (await fetch(`points/${i}`)).json();
  return Object.fromEntries(BLOCKS.map((name) => [name, row(name, i)]));
}

// Members whose features are counted, and whose neighbours tell who is central, when a group is drawn by hand.
let featureShares = null;
async function describe(members) {
  if (facts.served) {
    const found = await (await fetch("group", { method: "POST", body: Uint32Array.from(members) })).json();
    return { typical: found.typical.map((f, k) => ({ feature: f, text: amountText(found.amounts[k]) })),
      central: found.central };
  }
  const typical = block("typical"), width = typical.length / n;
  const count = (rows) => {
    const counts = new Float64Array(facts.features.length);
    for (const i of rows) for (let k = 0; k < width; k++) counts[typical[i * width + k]]++;
    return counts.map((c) => c / rows.length);
  };
  featureShares ??= count(Array.from({ length: n }, (_, i) => i));
  const shares = count(members);
  const order = Array.from(shares.keys()).filter((f) => shares[f] > 0)
    .sort((a, b) => shares[b] * Math.log(shares[b] / featureShares[b]) - shares[a] * Math.log(shares[a] / featureShares[a]));
  const near = block("neighbors"), k = near.length / n, inside = new Set(members), named = new Map();
  for (const i of members) {
    for (let r = i * k; r < (i + 1) * k; r++) {
      if (inside.has(near[r])) named.set(near[r], (named.get(near[r]) ?? 0) + 1);
    }
  }
  const central = [...named.keys()].sort((a, b) => named.get(b) - named.get(a) || a - b);
  return {
    typical: order.slice(0, 6).map((f) => ({ feature: f, text: `${percent(shares[f])} of them, ${percent(featureShares[f])} of all` })),
    central: (central.length ? central : [...members]).slice(0, 6),
    counted: true,
  };
}

// ---- words

const percent = (share) => {
  const value = 100 * share;
  return `${value > 0 && value < 0.95 ? value.toPrecision(1) : value > 99 && value < 100 ? value.toFixed(1) : Math.round(value)} %`;
};
const short = (value) => (value == null || Number.isNaN(value) ? "–" : String(+value.toPrecision(3)).replace("-", "−"));
const digits = (value) => (Math.abs(value) < 1000 ? value.toPrecision(3).replace("-", "−") : short(value)); // which stand below each other
const count = (number, word) => `${number.toLocaleString("en")} ${word}${number === 1 ? "" : "s"}`;
const amountText = (amount) => facts.signed ? `${amount > 0 ? "+" : "−"}${short(Math.abs(amount))} standard deviations`
  : `${digits(amount)} × the average`;

let certainty = null;
function certaintyOf(i) { // the share of points that are less certain
  if (!certainty) {
    const order = Uint32Array.from({ length: n }, (_, k) => k).sort((a, b) => spread[b] - spread[a]);
    certainty = new Float32Array(n);
    order.forEach((point, place) => { certainty[point] = place / Math.max(n - 1, 1); });
  }
  return certainty[i];
}

// ---- colours

const PALETTE = ["#3b82d0", "#e0662b", "#1f9e77", "#b95fa8", "#b28a00", "#5fb3d9", "#7d6be0", "#9a7b63", "#d64561",
  "#6da832", "#1aa6a6", "#c98f8f"];
const GREY = "#8b939c";
const RAMP = ["#3d4f9f", "#2a87a8", "#35b07c", "#a8c545", "#f0c330"];
const channels = (hex) => [1, 3, 5].map((k) => parseInt(hex.slice(k, k + 2), 16));
const rampColor = (share) => {
  const at = Math.min(Math.max(share, 0), 1) * (RAMP.length - 1), low = Math.min(Math.floor(at), RAMP.length - 2);
  const [a, b] = [channels(RAMP[low]), channels(RAMP[low + 1])];
  return a.map((value, c) => Math.round(value + (b[c] - value) * (at - low)));
};

// A coloring has kinds (names, and which each point has) or values (numbers of a scale).
const clusterNames = facts.clusters.map((cluster) => cluster.name);
const colorings = new Map([["cluster", { label: "cluster", kinds: clusterNames, code: (i) => clusters[i] }]]);
facts.columns.forEach((column, k) => {
  const key = `column${k}`;
  colorings.set(key, column.kinds ? { label: column.name, kinds: column.kinds, code: (i) => block(key)[i] }
    : { label: column.name, value: (i) => block(key)[i] });
});
if (get("block-edges").textContent) colorings.set("degree", { label: "links", value: degree, log: true });
colorings.set("certainty", { label: "certainty", value: certaintyOf });

function paint(key) {
  const coloring = colorings.get(key), colors = new Uint8Array(4 * n);
  if (coloring.kinds) {
    const table = coloring.kinds.map((_, k) => channels(k < PALETTE.length ? PALETTE[k] : GREY));
    const grey = channels(GREY);
    for (let i = 0; i < n; i++) colors.set(table[coloring.code(i)] ?? grey, 4 * i);
  } else {
    const scale = coloring.log ? Math.log1p : (value) => value;
    let low = Infinity, high = -Infinity;
    for (let i = 0; i < n; i++) {
      const value = coloring.value(i);
      if (value < low) low = value;
      if (value > high) high = value;
    }
    coloring.ends = [low, high];
    const table = Array.from({ length: 256 }, (_, k) => rampColor(k / 255)), grey = channels(GREY);
    const from = scale(low), width = scale(high) - from || 1;
    for (let i = 0; i < n; i++) {
      const value = coloring.value(i);
      colors.set(Number.isNaN(value) ? grey : table[Math.round(255 * (scale(value) - from) / width)], 4 * i);
    }
  }
  for (let i = 0; i < n; i++) colors[4 * i + 3] = 255;
  return colors;
}

// ---- state, which the address keeps

const dark = matchMedia("(prefers-color-scheme: dark)");
const state = { point: null, group: null, color: "cluster", view: null, theme: null };
let home = { x: 0, y: 0, k: 1 };

function remember() {
  const kept = new URLSearchParams();
  if (state.point !== null) kept.set("point", facts.ids[state.point]);
  if (state.group) kept.set("group", state.group.text);
  if (state.color !== "cluster") kept.set("color", state.color);
  if (state.theme) kept.set("theme", state.theme);
  const { x, y, k } = state.view;
  if (x !== home.x || y !== home.y || k !== home.k) kept.set("view", [x, y, k].map((v) => +v.toPrecision(5)).join(","));
  history.replaceState(null, "", `#${String(kept).replaceAll("%2C", ",").replaceAll("%3A", ":")}`);
}
let remembering = 0;
const rememberSoon = () => { clearTimeout(remembering); remembering = setTimeout(remember, 200); };

const positions = new Map(facts.ids.map((id, i) => [id, i]));
function recall() {
  const kept = new URLSearchParams(location.hash.slice(1));
  state.color = colorings.has(kept.get("color")) ? kept.get("color") : "cluster";
  const view = (kept.get("view") ?? "").split(",").map(Number);
  state.view = view.length === 3 && view.every(Number.isFinite) && view[2] > 0 ? { x: view[0], y: view[1], k: view[2] }
    : { ...home };
  setTheme(["light", "dark"].includes(kept.get("theme")) ? kept.get("theme") : null);
  get("color").value = state.color;
  recolor();
  const group = kept.get("group") && parseGroup(kept.get("group"));
  if (positions.has(kept.get("point"))) select(positions.get(kept.get("point")), { move: false });
  else if (group) selectGroup(group, { move: false });
  else clear();
}

// ---- groups: a kind of a coloring ("cluster:3"), or what a lasso holds ("lasso:x,y,x,y,...")

function parseGroup(text) {
  const [kind, rest = ""] = text.split(":");
  const members = [];
  if (kind === "lasso") {
    const numbers = rest.split(",").map(Number);
    if (numbers.length < 6 || !numbers.every(Number.isFinite)) return null;
    const corners = Array.from({ length: numbers.length >> 1 }, (_, k) => [numbers[2 * k], numbers[2 * k + 1]]);
    const [xs, ys] = [0, 1].map((c) => corners.map((corner) => corner[c]));
    const [left, right, low, high] = [Math.min(...xs), Math.max(...xs), Math.min(...ys), Math.max(...ys)];
    for (let i = 0; i < n; i++) {
      const x = places[2 * i], y = places[2 * i + 1];
      if (x < left || x > right || y < low || y > high) continue;
      let inside = false;
      for (let a = 0, b = corners.length - 1; a < corners.length; b = a++) {
        const [ax, ay] = corners[a], [bx, by] = corners[b];
        if (ay > y !== by > y && x < (bx - ax) * (y - ay) / (by - ay) + ax) inside = !inside;
      }
      if (inside) members.push(i);
    }
    return { text, title: "Lasso", members, corners };
  }
  const coloring = colorings.get(kind), code = Number(rest);
  if (!coloring?.kinds || !(code in coloring.kinds)) return null;
  for (let i = 0; i < n; i++) if (coloring.code(i) === code) members.push(i);
  return { text, title: coloring.kinds[code], members, cluster: kind === "cluster" ? facts.clusters[code] : null };
}

// ---- the map

const map = get("map"), canvas = get("points"), overlay = get("overlay"), pen = overlay.getContext("2d");
const gl = canvas.getContext("webgl2", { antialias: false, alpha: true, premultipliedAlpha: true });
let width = 1, height = 1, ratio = 1, colorBuffer, memberBuffer, uniforms;

function startDrawing() {
  const program = gl.createProgram();
  for (const [kind, text] of [[gl.VERTEX_SHADER, `#version 300 es
    in vec2 place; in vec4 color; uniform vec2 scale, offset; uniform float size, alpha; out vec4 ink;
    void main() { gl_Position = vec4(place * scale + offset, 0, 1); gl_PointSize = size; ink = vec4(color.rgb, alpha); }`],
  [gl.FRAGMENT_SHADER, `#version 300 es
    precision highp float; in vec4 ink; uniform float size; out vec4 shown;
    void main() { float edge = clamp((0.5 - length(gl_PointCoord - 0.5)) * size + 0.5, 0.0, 1.0);
      if (edge == 0.0) discard;
      shown = vec4(ink.rgb, 1) * ink.a * edge; }`]]) {
    const shader = gl.createShader(kind);
    gl.shaderSource(shader, text);
    gl.compileShader(shader);
    gl.attachShader(program, shader);
  }
  gl.linkProgram(program);
  gl.useProgram(program);
  uniforms = Object.fromEntries(["scale", "offset", "size", "alpha"].map((name) => [name, gl.getUniformLocation(program, name)]));
  const attribute = (name, size, kind, normalized) => {
    const buffer = gl.createBuffer(), at = gl.getAttribLocation(program, name);
    gl.bindBuffer(gl.ARRAY_BUFFER, buffer);
    gl.enableVertexAttribArray(at);
    gl.vertexAttribPointer(at, size, kind, normalized, 0, 0);
    return buffer;
  };
  attribute("place", 2, gl.FLOAT, false);
  gl.bufferData(gl.ARRAY_BUFFER, places, gl.STATIC_DRAW);
  colorBuffer = attribute("color", 4, gl.UNSIGNED_BYTE, true);
  memberBuffer = gl.createBuffer();
  gl.bindBuffer(gl.ELEMENT_ARRAY_BUFFER, memberBuffer);
  gl.enable(gl.BLEND);
  gl.blendFunc(gl.ONE, gl.ONE_MINUS_SRC_ALPHA);
}

let colors = null;
const colorOf = (i) => `rgb(${colors[4 * i]} ${colors[4 * i + 1]} ${colors[4 * i + 2]})`;
function recolor() {
  colors = paint(state.color);
  if (gl) {
    gl.bindBuffer(gl.ARRAY_BUFFER, colorBuffer);
    gl.bufferData(gl.ARRAY_BUFFER, colors, gl.STATIC_DRAW);
  }
  draw();
}

// Half of the shorter side of the map is one unit at k = 1.
const unit = () => 0.5 * Math.min(width, height) * state.view.k;
const toScreen = (i) => [width / 2 + (places[2 * i] - state.view.x) * unit(), height / 2 - (places[2 * i + 1] - state.view.y) * unit()];
const toMap = (x, y) => [state.view.x + (x - width / 2) / unit(), state.view.y - (y - height / 2) / unit()];
const dotSize = () => Math.min(14, Math.max(2, 0.3 * Math.min(width, height) / Math.sqrt(n)) * Math.sqrt(state.view.k / home.k) + 0.5);

function fit() {
  let [left, right, low, high] = [Infinity, -Infinity, Infinity, -Infinity];
  for (let i = 0; i < n; i++) {
    left = Math.min(left, places[2 * i]); right = Math.max(right, places[2 * i]);
    low = Math.min(low, places[2 * i + 1]); high = Math.max(high, places[2 * i + 1]);
  }
  const short = Math.min(width, height);
  const k = 0.92 * Math.min(width / short / ((right - left) / 2 || 1), height / short / ((high - low) / 2 || 1));
  home = n ? { x: (left + right) / 2, y: (low + high) / 2, k } : home;
}

let drawing = false;
function draw() {
  if (drawing) return;
  drawing = true;
  requestAnimationFrame(() => { drawing = false; drawNow(); });
}
let details = null; // of the selected point
let hovered = null, drawn = null; // the point under the pointer; the lasso that is being drawn

// Without a graphics processor a picture of many points takes long: while the map moves, the last one is moved instead.
let slow = false, moving = 0, pictured = null; // pictured: the view of the last picture
let lastFrame = 0;
function rest() {
  clearTimeout(moving);
  moving = 0;
  draw();
}
function startMoving() {
  clearTimeout(moving);
  moving = setTimeout(rest, 150);
}
function judge() {
  const begun = performance.now();
  drawNow();
  gl.readPixels(0, 0, 1, 1, gl.RGBA, gl.UNSIGNED_BYTE, new Uint8Array(4)); // waits for the picture
  slow = performance.now() - begun > 8;
}

function drawNow() {
  const begun = performance.now();
  slow ||= moving && begun - lastFrame > 25 && begun - lastFrame < 150;
  lastFrame = begun;
  if (gl && slow && moving) {
    const { x, y, k } = state.view, [dx, dy] = [(pictured.x - x) * unit(), (y - pictured.y) * unit()];
    canvas.style.transform = overlay.style.transform = `translate(${dx}px, ${dy}px) scale(${k / pictured.k})`;
    return;
  }
  canvas.style.transform = overlay.style.transform = "";
  pictured = { ...state.view };
  if (gl) {
    gl.viewport(0, 0, canvas.width, canvas.height);
    gl.clear(gl.COLOR_BUFFER_BIT);
    const [sx, sy] = [2 * unit() / width, 2 * unit() / height], size = dotSize() * ratio;
    gl.uniform2f(uniforms.scale, sx, sy);
    gl.uniform2f(uniforms.offset, -state.view.x * sx, -state.view.y * sy);
    gl.uniform1f(uniforms.size, size);
    gl.uniform1f(uniforms.alpha, state.group ? 0.12 : state.point !== null ? 0.35 : 0.8);
    gl.drawArrays(gl.POINTS, 0, n);
    if (state.group) {
      gl.uniform1f(uniforms.alpha, 0.9);
      gl.drawElements(gl.POINTS, state.group.members.length, gl.UNSIGNED_INT, 0);
    }
  }
  drawOverlay();
  document.documentElement.dataset.painted ??= Math.round(performance.now());
}

let ink, paper, accent;
function readInks() {
  const style = getComputedStyle(map);
  [ink, paper, accent] = [style.color, style.backgroundColor, getComputedStyle(get("said")).color];
}
const FONT = "13px system-ui, sans-serif";
const clip = (text) => (text.length > 28 ? `${text.slice(0, 27)}…` : text);
const visible = (x, y) => x > -20 && y > -20 && x < width + 20 && y < height + 20;

function drawOverlay() {
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  pen.clearRect(0, 0, width, height);
  pen.lineJoin = "round";
  const radius = dotSize() / 2, taken = [];
  // A name stands above its point, below it or beside it: where it covers no other, or nowhere.
  const label = (text, x, y, { bold = false, away = radius + 4, always = false, beside = true } = {}) => {
    pen.font = `${bold ? 600 : 400} ${FONT}`;
    const half = pen.measureText(text).width / 2, side = half + 4;
    // what stands above or below a point of the map stays inside it
    const middle = x > 0 && x < width ? Math.max(side, Math.min(x, width - side)) : x;
    const spots = [[middle, y - away - 7], [middle, y + away + 8], [x + away + half + 3, y], [x - away - half - 3, y]];
    const free = ([left, top]) => !taken.some(([tx, ty, th, tv]) => Math.abs(tx - left) < half + th && Math.abs(ty - top) < 7 + tv);
    const spot = spots.slice(0, beside ? 4 : 2).find(free) ?? (always ? spots[0] : null);
    if (!spot) return false;
    taken.push([...spot, half, 8]);
    pen.textAlign = "center";
    pen.textBaseline = "middle";
    pen.lineWidth = 3.5;
    pen.strokeStyle = paper;
    pen.strokeText(text, ...spot);
    pen.fillStyle = ink;
    pen.fillText(text, ...spot);
    return true;
  };
  const disc = (i, size, lineWidth) => {
    const [x, y] = toScreen(i);
    pen.beginPath();
    pen.arc(x, y, size, 0, 2 * Math.PI);
    pen.fillStyle = colorOf(i);
    pen.fill();
    pen.strokeStyle = ink;
    pen.lineWidth = lineWidth;
    pen.stroke();
  };
  const corners = drawn ?? state.group?.corners;
  if (corners) {
    pen.beginPath();
    for (const [x, y] of corners) pen.lineTo(width / 2 + (x - state.view.x) * unit(), height / 2 - (y - state.view.y) * unit());
    pen.closePath();
    pen.strokeStyle = accent;
    pen.lineWidth = 1.5;
    pen.setLineDash([5, 4]);
    pen.stroke();
    pen.setLineDash([]);
  }
  if (state.point !== null) {
    const i = state.point, [x, y] = toScreen(i), near = (details?.neighbors ?? []).filter((j) => j >= 0);
    const likely = (details?.links ?? []).filter((j) => j >= 0), linked = [...linksOf(i)];
    const doubted = new Set(doubtedOf(i));
    const lines = (ends, color, lineWidth, dash) => {
      pen.beginPath();
      for (const j of ends) {
        pen.moveTo(x, y);
        pen.lineTo(...toScreen(j));
      }
      pen.setLineDash(dash);
      pen.strokeStyle = color;
      pen.lineWidth = lineWidth;
      pen.stroke();
      pen.setLineDash([]);
    };
    pen.globalAlpha = 0.55;
    lines(linked.filter((j) => !doubted.has(j)), ink, 1, []);
    lines(doubted, ink, 0.3, []);
    pen.globalAlpha = 1;
    lines(likely, accent, 1.5, [2, 4]);
    pen.globalAlpha = 0.13;
    pen.fillStyle = accent;
    pen.beginPath(); // the halo: the less certain, the wider
    pen.arc(x, y, radius + 10 + 26 * (1 - certaintyOf(i)), 0, 2 * Math.PI);
    pen.fill();
    pen.globalAlpha = 1;
    const others = [...new Set([...near, ...linked.slice(0, 200)])].filter((j) => visible(...toScreen(j)));
    for (const j of others) disc(j, radius + 0.5, 1);
    disc(i, radius + 3, 2.5);
    for (const [px, py] of [i, ...others].map(toScreen)) taken.push([px, py, radius, radius]);
    label(clip(facts.ids[i]), x, y, { bold: true, away: radius + 6, always: true });
    for (const j of others.slice(0, 24)) label(clip(facts.ids[j]), ...toScreen(j));
  } else if (!state.group && colorings.get(state.color).kinds) {
    for (const [x, y, text] of middles()) {
      const place = [width / 2 + (x - state.view.x) * unit(), height / 2 - (y - state.view.y) * unit()];
      // a cluster's name is short where the map is narrow, and never stands on another cluster
      for (const name of state.color === "cluster" ? [...(width < 600 ? [] : [text]), text.split(", ")[0]] : [text]) {
        if (label(clip(name), ...place, { bold: true, away: 2, beside: false })) break;
      }
    }
  }
  if (hovered !== null && hovered !== state.point) {
    disc(hovered, radius + 2, 2);
    label(clip(facts.ids[hovered]), ...toScreen(hovered), { bold: true, always: true });
  }
}

// Where the names of kinds stand: at the middle of their members.
const middlesOf = new Map();
function middles() {
  if (!middlesOf.has(state.color)) {
    const { kinds, code } = colorings.get(state.color), members = kinds.slice(0, PALETTE.length).map(() => []);
    for (let i = 0; i < n; i++) members[code(i)]?.push(i);
    const middle = (rows, c) => rows.map((i) => places[2 * i + c]).sort((a, b) => a - b)[rows.length >> 1];
    middlesOf.set(state.color, members.flatMap((rows, k) => (rows.length ? [[middle(rows, 0), middle(rows, 1), kinds[k]]] : [])));
  }
  return middlesOf.get(state.color);
}

// Points in cells of a grid, to find the one under the pointer.
let grid = null;
function pointAt(x, y, reach = 12) {
  const side = Math.max(1, Math.min(512, Math.round(Math.sqrt(n / 2))));
  if (!grid) {
    const cells = Array.from({ length: side * side }, () => []);
    const low = [Infinity, Infinity], high = [-Infinity, -Infinity];
    places.forEach((value, k) => { low[k % 2] = Math.min(low[k % 2], value); high[k % 2] = Math.max(high[k % 2], value); });
    const cellOf = (value, c) => Math.min(side - 1, Math.max(0, Math.floor((value - low[c]) / (high[c] - low[c] || 1) * side)));
    for (let i = 0; i < n; i++) cells[cellOf(places[2 * i + 1], 1) * side + cellOf(places[2 * i], 0)].push(i);
    grid = { cells, cellOf };
  }
  const [left, high] = toMap(x - reach, y - reach), [right, low] = toMap(x + reach, y + reach);
  let best = null, least = reach * reach;
  for (let r = grid.cellOf(low, 1); r <= grid.cellOf(high, 1); r++) {
    for (let c = grid.cellOf(left, 0); c <= grid.cellOf(right, 0); c++) {
      for (const i of grid.cells[r * side + c]) {
        const [px, py] = toScreen(i), away = (px - x) ** 2 + (py - y) ** 2;
        if (away < least) { best = i; least = away; }
      }
    }
  }
  return best;
}

function zoom(factor, x = width / 2, y = height / 2) {
  const before = toMap(x, y);
  state.view.k = Math.min(Math.max(state.view.k * factor, home.k / 4), home.k * 2000);
  const after = toMap(x, y);
  state.view.x += before[0] - after[0];
  state.view.y += before[1] - after[1];
  startMoving();
  draw();
  rememberSoon();
}
function showAll() { state.view = { ...home }; draw(); rememberSoon(); }
function moveTo(i) { // only if it is near the edge or beyond
  const [x, y] = toScreen(i);
  if (x > 60 && x < width - 60 && y > 60 && y < height - 60) return;
  state.view.x = places[2 * i];
  state.view.y = places[2 * i + 1];
}

// ---- pointers: one pans or draws a lasso, two zoom; a press without a move selects

const pointers = new Map();
let moved = false;
const at = (event) => {
  const box = map.getBoundingClientRect();
  return [event.clientX - box.left, event.clientY - box.top];
};
map.addEventListener("pointerdown", (event) => {
  if (event.target.closest("button") || event.button > 0) return;
  map.setPointerCapture(event.pointerId);
  pointers.set(event.pointerId, at(event));
  moved = false;
  if (pointers.size === 1 && (event.shiftKey || get("lasso").ariaPressed === "true")) drawn = [toMap(...at(event))];
});
map.addEventListener("pointermove", (event) => {
  const [x, y] = at(event), before = pointers.get(event.pointerId);
  if (!before) {
    const found = event.pointerType === "mouse" && !event.target.closest("button") ? pointAt(x, y) : null;
    if (found !== hovered) { hovered = found; map.style.cursor = found === null ? "" : "pointer"; draw(); }
    return;
  }
  if (!moved && Math.hypot(x - before[0], y - before[1]) < 4) return;
  moved = true;
  if (drawn) drawn.push(toMap(x, y));
  else if (pointers.size === 1) {
    state.view.x -= (x - before[0]) / unit();
    state.view.y += (y - before[1]) / unit();
    startMoving();
  } else {
    const [other] = [...pointers].filter(([id]) => id !== event.pointerId)[0].slice(1);
    zoom(Math.hypot(x - other[0], y - other[1]) / Math.max(Math.hypot(before[0] - other[0], before[1] - other[1]), 1),
      (x + other[0]) / 2, (y + other[1]) / 2);
  }
  pointers.set(event.pointerId, [x, y]);
  draw();
});
const lift = (event) => {
  if (!pointers.delete(event.pointerId)) return;
  if (drawn) {
    const step = Math.ceil(drawn.length / 80), corners = drawn.filter((_, k) => k % step === 0);
    drawn = null;
    setLasso(false);
    const group = corners.length > 2 && parseGroup(`lasso:${corners.flat().map((v) => +v.toPrecision(4)).join(",")}`);
    if (group?.members.length) selectGroup(group, { move: false });
    else draw();
  } else if (!moved && event.type === "pointerup") {
    const found = pointAt(...at(event), event.pointerType === "mouse" ? 12 : 24);
    if (found === null) clear();
    else select(found, { move: false });
  } else {
    rest();
    rememberSoon();
  }
};
map.addEventListener("pointerup", lift);
map.addEventListener("pointercancel", lift);
map.addEventListener("pointerleave", () => { hovered = null; draw(); });
map.addEventListener("wheel", (event) => {
  event.preventDefault();
  zoom(Math.exp(-event.deltaY * (event.deltaMode ? 0.05 : 0.0015)), ...at(event));
}, { passive: false });
function setLasso(on) {
  get("lasso").ariaPressed = String(on);
  map.classList.toggle("lasso", on);
}
get("lasso").addEventListener("click", () => setLasso(get("lasso").ariaPressed !== "true"));
get("larger").addEventListener("click", () => zoom(1.5));
get("smaller").addEventListener("click", () => zoom(1 / 1.5));
get("whole").addEventListener("click", showAll);

// ---- keys

const ARROWS = { ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] };
function walk([dx, dy]) { // to the neighbour or linked point that lies most in this direction
  if (state.point === null) return select(state.group?.members[0] ?? 0);
  let best = null, most = 0.2;
  for (const j of new Set([...(details?.neighbors ?? []), ...linksOf(state.point)])) {
    if (j < 0) continue;
    const x = places[2 * j] - places[2 * state.point], y = places[2 * j + 1] - places[2 * state.point + 1];
    const along = (x * dx + y * dy) / Math.hypot(x, y);
    if (along > most) { best = j; most = along; }
  }
  if (best === null) say("no neighbour in this direction");
  else select(best);
}
document.addEventListener("keydown", (event) => {
  const typing = event.target.matches("input, select");
  if (event.key === "Escape") {
    if (drawn) { drawn = null; pointers.clear(); }
    setLasso(false);
    closeResults();
    clear();
    if (typing) map.focus();
  } else if (typing || event.ctrlKey || event.metaKey || event.altKey) return;
  else if (event.key === "/") get("search").focus();
  else if (event.key in ARROWS && (event.target === map || event.target === document.body)) walk(ARROWS[event.key]);
  else if (event.key === "+" || event.key === "=") zoom(1.5);
  else if (event.key === "-") zoom(1 / 1.5);
  else if (event.key === "0") showAll();
  else return;
  event.preventDefault();
});

// ---- search

let found = [], chosen = 0;
function search() {
  const wanted = get("search").value.trim().toLowerCase(), exact = [], starts = [], holds = [];
  if (wanted) {
    for (let i = 0; i < n && starts.length < 50; i++) {
      const id = facts.ids[i].toLowerCase(), where = id.indexOf(wanted);
      if (where === 0) (id === wanted ? exact : starts).push(i);
      else if (where > 0 && holds.length < 50) holds.push(i);
    }
    if (!exact.length && positions.has(get("search").value.trim())) exact.push(positions.get(get("search").value.trim()));
  }
  found = [...exact, ...starts, ...holds].slice(0, 50);
  chosen = 0;
  showResults(Boolean(wanted));
}
function showResults(open) {
  const items = found.map((i, k) => h("li", { id: `result-${k}`, role: "option", "aria-selected": String(k === chosen), onclick: () => take(i) }, facts.ids[i]));
  get("results").replaceChildren(...(items.length ? items : [h("li", { class: "soft" }, "no such id")]));
  get("results").hidden = !open;
  get("search").ariaExpanded = String(open);
  get("search").setAttribute("aria-activedescendant", open && items.length ? `result-${chosen}` : "");
  get(`result-${chosen}`)?.scrollIntoView({ block: "nearest" });
}
function closeResults() { found = []; showResults(false); }
function take(i) {
  get("search").value = "";
  closeResults();
  state.view = { x: places[2 * i], y: places[2 * i + 1], k: Math.max(state.view.k, 4 * home.k) };
  select(i);
  map.focus({ preventScroll: true });
}
get("search").addEventListener("input", search);
get("search").addEventListener("blur", () => setTimeout(closeResults, 150));
get("search").addEventListener("keydown", (event) => {
  if (event.key === "Enter" && found.length) take(found[chosen]);
  else if (event.key === "ArrowDown" && found.length) { chosen = (chosen + 1) % found.length; showResults(true); event.preventDefault(); }
  else if (event.key === "ArrowUp" && found.length) { chosen = (chosen + found.length - 1) % found.length; showResults(true); event.preventDefault(); }
});

// ---- selection

async function select(i, { move = true } = {}) {
  state.point = i;
  state.group = null;
  details = null;
  if (move) moveTo(i);
  draw();
  const given = await detailsOf(i);
  if (state.point !== i) return; // another was selected meanwhile
  details = given;
  showPoint();
  showList();
  say(`${facts.ids[i]}, in ${clusterNames[clusters[i]]}, ${count(degree(i), "link")}; nearest: ${details.neighbors.filter((j) => j >= 0).slice(0, 3).map((j) => facts.ids[j]).join(", ")}`);
  draw();
  rememberSoon();
}
async function selectGroup(group, { move = true } = {}) {
  state.point = null;
  state.group = group;
  if (gl) gl.bufferData(gl.ELEMENT_ARRAY_BUFFER, Uint32Array.from(group.members), gl.STATIC_DRAW);
  if (move) state.view = { ...home };
  draw();
  const known = group.members.length ? await describe(group.members) : { typical: [], central: [] };
  if (state.group !== group) return;
  if (group.cluster) known.counted = false;
  if (group.cluster) known.typical = group.cluster.features.map((f, k) => ({ feature: f, text: amountText(group.cluster.amounts[k]) }));
  showGroup(group, known);
  showList();
  say(`${group.title}: ${count(group.members.length, "point")}`);
  rememberSoon();
}
function clear() {
  state.point = state.group = details = null;
  showOverview();
  showList();
  draw();
  rememberSoon();
}

// ---- the panel

function h(name, attributes = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else element.setAttribute(key, value);
  }
  element.append(...children.flat().filter((child) => child != null));
  return element;
}
const say = (text) => { get("said").textContent = text; };
const hover = (i) => { hovered = i; draw(); };
const pointButton = (i) => h("button", { type: "button", class: "link", onclick: () => { hovered = null; select(i); },
  onpointerenter: () => hover(i), onpointerleave: () => hover(null) }, facts.ids[i]);
const groupButton = (text, title) => h("button", { type: "button", class: "link", onclick: () => selectGroup(parseGroup(text)) }, title);
const dot = (color) => { const element = h("span", { class: "dot", "aria-hidden": "true" }); element.style.background = color; return element; };
const bar = (share) => { const inside = h("i"); inside.style.width = `${100 * share}%`; return h("span", { class: "bar", "aria-hidden": "true" }, inside); };
const title = (text) => h("div", { class: "title" }, h("h2", {}, text),
  h("button", { type: "button", "aria-label": "Clear the selection", onclick: () => { clear(); map.focus({ preventScroll: true }); } }, "×"));
const grid2 = (head, rows) => h("table", {}, h("thead", {}, h("tr", {}, head.map((text, k) => h("th", { scope: "col", class: k ? "number" : "" }, text)))),
  h("tbody", {}, rows.map((cells) => h("tr", {}, cells.map((cell, k) => h("td", { class: k ? "number" : "" }, cell))))));
function featureRows(list) {
  return h("dl", {}, list.map(({ feature, text }) => h("div", {}, h("dt", {}, facts.features[feature]), h("dd", { class: "number" }, text))));
}
function show(...children) {
  get("panel").replaceChildren(...children.flat().filter((child) => child != null));
  get("panel").scrollTop = 0;
}

function showOverview() {
  const coloring = colorings.get(state.color), m = block("edges").length / 2;
  const parts = [h("h2", {}, count(n, "point")), h("p", { class: "soft" }, `${count(facts.features.length, "feature")}, ${count(m, "link")}.`),
    h("h3", {}, `Coloured by ${coloring.label}`)];
  if (coloring.kinds) {
    const sizes = new Uint32Array(coloring.kinds.length);
    for (let i = 0; i < n; i++) if (coloring.code(i) >= 0) sizes[coloring.code(i)]++;
    parts.push(h("ul", { class: "legend" }, coloring.kinds.slice(0, 40).map((kind, k) => h("li", {}, dot(PALETTE[k] ?? GREY),
      groupButton(`${state.color}:${k}`, kind), h("span", { class: "soft" }, sizes[k].toLocaleString("en"))))));
  } else {
    const ramp = h("div", { class: "ramp", "aria-hidden": "true" });
    ramp.style.background = `linear-gradient(to right, ${RAMP})`;
    parts.push(ramp, h("div", { class: "ends soft" }, coloring.ends.map((end) => h("span", {}, state.color === "certainty" ? ["least", "most"][end] : short(end)))));
  }
  parts.push(h("p", { class: "note" }, "Click a point, or press / and type an id. Clusters are named after their most typical features."));
  show(parts);
}

function showPoint() {
  const i = state.point, linked = new Set(linksOf(i)), doubted = [...doubtedOf(i)], near = details.neighbors.filter((j) => j >= 0);
  const links = details.links.filter((j) => j >= 0), chances = details.probabilities, head = ["Point", facts.metric];
  if (facts.correlated) head.push("correlation");
  if (chances) head.push("link");
  const rows = near.map((j, k) => [[pointButton(j), linked.has(j) ? h("span", { class: "soft" }, " · linked") : ""], digits(details.scores[k]),
    ...(facts.correlated ? [digits(details.correlations[k])] : []), ...(chances ? [percent(chances[k])] : [])]);
  show(title(facts.ids[i]),
    h("dl", {},
      h("dt", {}, "cluster"), h("dd", {}, dot(PALETTE[clusters[i]] ?? GREY), groupButton(`cluster:${clusters[i]}`, clusterNames[clusters[i]])),
      facts.columns.flatMap((column, k) => {
        const value = block(`column${k}`)[i];
        return [h("dt", {}, column.name), h("dd", {}, column.kinds ? column.kinds[value] ?? "–" : short(value))];
      }),
      h("dt", {}, "uncertainty"), h("dd", {}, `${short(spread[i])} (the prior has 1); more certain than ${percent(certaintyOf(i))}`, bar(certaintyOf(i)))),
    h("h3", {}, "What is typical of it"), featureRows(details.typical.map((f, k) => ({ feature: f, text: amountText(details.amounts[k]) }))),
    h("h3", {}, "Nearest points"), grid2(head, rows),
    linked.size ? [h("h3", {}, count(linked.size, "known link")), h("div", { class: "chips" }, [...linked].slice(0, 40).map(pointButton),
      linked.size > 40 ? h("span", { class: "soft" }, `and ${linked.size - 40} more`) : ""),
    doubted.length ? h("p", { class: "note" }, "Drawn thin, because the data do not support them: ", doubted.slice(0, 40).map(pointButton)) : null] : null,
    links.length && chances ? [h("h3", {}, "Likely links that are not there yet"),
      grid2(["Point", "probability"], links.map((j, k) => [pointButton(j), percent(details.link_probabilities[k])])),
      h("p", { class: "note" }, facts.probabilities === "training" ? "Probabilities were learned from links of training, which flatter the model."
        : "Probabilities were learned from links kept from training.")] : null,
    details.items && [h("h3", {}, `Recommended, by ${facts.expectation}`), featureRows(details.items.map((f, k) => ({ feature: f, text: digits(details.item_scores[k]) }))
      .filter(({ feature }) => feature >= 0))]);
}

function showGroup(group, known) {
  const least = [...group.members].sort((a, b) => spread[b] - spread[a]).slice(0, 6);
  const share = percent(group.members.length / n);
  show(title(group.title), h("p", { class: "soft" }, `${count(group.members.length, "point")}, ${share} of all`),
    h("h3", {}, "Typical features"), featureRows(known.typical),
    known.counted ? h("p", { class: "note" }, "How often a feature is among what is typical of a point.") : null,
    h("h3", {}, "Most central"), h("div", { class: "chips" }, known.central.map(pointButton)),
    h("h3", {}, "Least certain"), h("div", { class: "chips" }, least.map(pointButton)));
}

// ---- the table of points

const COLUMNS = [["Point", (i) => facts.ids[i]], ["Cluster", (i) => clusterNames[clusters[i]]],
  ...facts.columns.map((column, k) => [column.name, (i) => (column.kinds ? column.kinds[block(`column${k}`)[i]] ?? "" : block(`column${k}`)[i])]),
  ["Links", degree], ["Uncertainty", (i) => spread[i]]];
let listed = [], shown = 0, sorted = { column: null, down: false };
function showList() {
  const scope = state.group ? state.group.members : Array.from({ length: n }, (_, i) => i);
  get("list-title").textContent = state.group ? `Points of ${state.group.title}` : "All points";
  listed = [...scope];
  if (sorted.column !== null) {
    const value = COLUMNS[sorted.column][1], sign = sorted.down ? -1 : 1, keys = listed.map(value);
    const order = [...keys.keys()].sort((a, b) => sign * (keys[a] < keys[b] ? -1 : keys[a] > keys[b] ? 1 : 0) || a - b);
    listed = order.map((k) => listed[k]);
  }
  document.querySelector("#list thead").replaceChildren(h("tr", {}, COLUMNS.map(([name], c) => h("th", { scope: "col",
    "aria-sort": sorted.column === c ? (sorted.down ? "descending" : "ascending") : "none" },
  h("button", { type: "button", class: "link", onclick: () => { sorted = { column: c, down: sorted.column === c && !sorted.down }; showList(); } }, name)))));
  document.querySelector("#list tbody").replaceChildren();
  shown = 0;
  showMore(20);
}
function showMore(more) {
  const cell = (value) => (typeof value === "number" ? short(value) : value);
  document.querySelector("#list tbody").append(...listed.slice(shown, shown + more).map((i) => h("tr", { "aria-current": String(i === state.point) },
    COLUMNS.map(([, value], c) => h("td", {}, c ? cell(value(i)) : pointButton(i))))));
  shown = Math.min(shown + more, listed.length);
  get("more").hidden = shown === listed.length;
}
get("more").addEventListener("click", () => showMore(100));

// ---- start

function setTheme(theme) {
  state.theme = theme;
  document.documentElement.style.colorScheme = theme ?? "";
  get("theme").textContent = (theme ?? (dark.matches ? "dark" : "light")) === "dark" ? "Light" : "Dark";
  readInks();
}
get("theme").addEventListener("click", () => { setTheme(get("theme").textContent.toLowerCase()); draw(); rememberSoon(); });
dark.addEventListener("change", () => { setTheme(state.theme); draw(); });
get("color").append(...[...colorings].map(([key, { label }]) => h("option", { value: key }, label)));
get("color").addEventListener("change", () => {
  state.color = get("color").value;
  recolor();
  if (state.point === null && !state.group) showOverview();
  rememberSoon();
});
function resize() {
  const whole = !state.view || (state.view.x === home.x && state.view.y === home.y && state.view.k === home.k);
  ({ clientWidth: width, clientHeight: height } = map);
  ratio = Math.min(devicePixelRatio, 2);
  for (const each of [canvas, overlay]) [each.width, each.height] = [width * ratio, height * ratio];
  fit();
  if (whole) state.view = { ...home };
  draw();
}
map.ariaLabel = `Map of ${count(n, "point")}`;
if (gl) startDrawing();
else get("problem").hidden = false;
resize();
recall();
if (gl) setTimeout(judge, 200);
new ResizeObserver(resize).observe(map);
addEventListener("hashchange", recall);
})();
