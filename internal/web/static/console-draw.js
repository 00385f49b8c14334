// Draws what the console shows. Each part is drawn anew only when it has changed, so
// that what is focused, selected or unfolded stays so.
import * as words from './console-words.js';

const $ = (id) => document.getElementById(id);
const root = document.body.dataset.root;
const shownTools = 500; // of one server; Swagger UI has them all

let ahead = 0; // milliseconds by which the bridge's clock is ahead of the browser's
const drawn = new Map(); // :: part -> what it was drawn of
let states = new Map(); // :: handle -> how it was last said to be
let first = true;

// snapshot draws a snapshot of everything but the tools.
export function snapshot(s) {
  ahead = Date.parse(s.now) - Date.now();
  part('summary', s.servers, () => {
    const all = words.summary(s.servers);
    $('summary').dataset.level = all.level;
    $('summary').textContent = all.text;
    const broken = s.servers.filter((x) => words.level(x) === 'broken').length;
    document.title = broken ? `${broken} broken – MCP Bridge` : 'MCP Bridge';
    tell(s.servers);
  });
  part('facts', [s.ready, s.waiting, s.processes, s.max_processes, s.artifacts], () => {
    $('facts').textContent = [
      !s.ready && 'The bridge is starting',
      `${s.waiting} call${s.waiting === 1 ? '' : 's'} waiting`,
      `${s.processes} of ${s.max_processes} processes`,
      s.artifacts && `results ${s.artifacts.down ? 'cannot be kept just now' : 'are kept'} (${s.artifacts.store})`,
    ].filter(Boolean).join(' · ');
  });
  part('notices', s.config, () => $('notices').replaceChildren(...notices(s.config)));
  part('servers', s.servers, () => $('servers').replaceChildren(servers(s.servers)));
  part('circuits', s.circuits, () => $('circuits').replaceChildren(...circuits(s.circuits)));
  part('gates', s.gates, () => $('gates').replaceChildren(gates(s.gates)));
  calls(s.calls, s.everybody);
  tick();
}

// part draws one part of the page, if it is not drawn of the same data already.
function part(name, data, draw) {
  const key = JSON.stringify(data) ?? '';
  if (drawn.get(name) === key) return;
  const focused = document.activeElement?.dataset?.key;
  draw();
  drawn.set(name, key);
  if (focused && document.activeElement === document.body) {
    document.querySelector(`[data-key="${CSS.escape(focused)}"]`)?.focus({ preventScroll: true });
  }
}

// tell says to a screen reader which servers are in another state than before.
function tell(list) {
  const now = new Map(list.map((s) => [s.handle, words.stateName(s) + (s.circuit && s.circuit.state !== 'closed' ? `, circuit ${s.circuit.state}` : '')]));
  const changes = [];
  for (const [handle, state] of now) if (states.get(handle) !== state) changes.push(`${handle}: ${state}`);
  for (const handle of states.keys()) if (!now.has(handle)) changes.push(`${handle}: gone`);
  if (first) $('news').textContent = $('summary').textContent;
  else if (changes.length) $('news').textContent = `${changes.slice(0, 5).join('. ')}${changes.length > 5 ? `, and ${changes.length - 5} more` : ''}.`;
  states = now;
  first = false;
}

// tick brings all times that pass up to date. It is to be called each second.
export function tick() {
  const now = Date.now() + ahead;
  for (const e of document.querySelectorAll('[data-since], [data-until]')) {
    let text;
    if (e.dataset.since) {
      text = words.lasting(now - Date.parse(e.dataset.since));
    } else {
      const left = Date.parse(e.dataset.until) - now;
      text = left < 500 ? 'now' : `in ${words.lasting(left)}`;
    }
    if (e.textContent !== text) e.textContent = text;
  }
}

// ---- parts

function notices(config) {
  if (!config) return [];
  const all = [];
  if (config.stale) all.push(el('p', { class: 'notice', 'data-level': 'broken' }, el('strong', {}, 'The configuration file is wrong; the last good one is in use. '), (config.errors ?? []).slice(0, 5).join(' ')));
  if (config.restart?.length) all.push(el('p', { class: 'notice', 'data-level': 'warn' }, `Changed settings that take a restart: ${config.restart.join(', ')}`));
  return all;
}

function servers(list) {
  if (!list.length) return el('p', { class: 'quiet' }, 'No server is configured, or none may be seen with this key.');
  return table('servers', 'Servers, those that are broken first', ['Server', 'State', 'For', 'Tools'], words.worstFirst(list).map((s) => {
    const why = words.reason(s);
    const then = words.next(s);
    const circuit = s.circuit && s.circuit.state !== 'closed';
    return [
      words.level(s),
      [el('a', { href: root + s.docs, 'data-key': `server ${s.handle}` }, s.handle), s.title !== s.handle && el('span', { class: 'quiet title' }, s.title)],
      [
        el('span', { class: 'state', 'data-level': words.level(s) }, words.stateName(s)),
        circuit && el('span', { class: 'chip' }, `circuit ${s.circuit.state}`),
        why && el('span', { class: 'why' }, why),
        then.length > 0 && el('span', { class: 'next' }, ...then.map(moment)),
      ],
      s.since ? el('time', { datetime: s.since, 'data-since': s.since, title: new Date(s.since).toLocaleString() }) : '',
      String(s.tools),
    ];
  }));
}

function circuits(list) {
  const bad = list.filter((c) => c.state !== 'closed' || c.failures > 0);
  const good = list.filter((c) => !bad.includes(c));
  const rank = (c) => ['open', 'half-open', 'closed'].indexOf(c.state);
  const parts = [];
  if (bad.length) {
    parts.push(table('circuits', 'Circuits that are not closed, or have counted failures', ['Circuit', 'State', 'Failures', 'Tried again'], bad.toSorted((a, b) => rank(a) - rank(b)).map((c) => {
      const level = { open: 'broken', 'half-open': 'warn', closed: 'fine' }[c.state];
      return [level, c.name, [el('span', { class: 'state', 'data-level': level }, c.state)], String(c.failures),
        c.state === 'open' ? moment({ until: c.until }) : c.state === 'half-open' ? 'by the next call' : '–'];
    })));
  }
  if (good.length) {
    parts.push(el('p', {}, el('span', { class: 'state', 'data-level': 'fine' }, bad.length ? `${good.length} closed` : good.length === 1 ? 'The circuit is closed' : `All ${good.length} are closed`), el('span', { class: 'quiet' }, ` · ${good.slice(0, 20).map((c) => c.name.replace(/^mcp:/, '')).join(', ')}${good.length > 20 ? ', …' : ''}`)));
  }
  return parts.length ? parts : [el('p', { class: 'quiet' }, 'There are none yet.')];
}

function gates(list) {
  if (!list.length) return el('p', { class: 'quiet' }, 'There are none yet: each is made by the first call that needs it.');
  return table('gates', 'Gates: what calls hold of what there is', ['Gate', 'In use', 'Waiting'], list.map((g) => [
    g.waiting ? 'warn' : 'fine',
    [g.name, g.kind === 'rate' && el('span', { class: 'quiet title' }, 'rate')],
    [bar(g), `${g.in_use} of ${g.capacity}`],
    g.waiting ? el('strong', { class: 'waits' }, String(g.waiting)) : '0',
  ]));
}

// bar draws a gate: a box for each slot, or one bar where there are many, and behind a gap the calls in line.
function bar(g) {
  const width = 240, height = 14, gap = g.waiting ? 6 : 0;
  const unit = (width - gap) / Math.max(1, g.capacity + g.waiting);
  const pad = unit >= 6 ? 2 : 0;
  const shapes = [];
  const box = (kind, from, n, at = 0) => {
    if (n <= 0) return;
    const each = pad ? n : 1; // boxes
    for (let i = 0; i < each; i++) {
      shapes.push(svg('rect', { class: kind, x: at + (from + i) * unit + pad / 2, y: 1, width: Math.max(1, (pad ? unit : n * unit) - pad), height: height - 2, rx: 2 }));
    }
  };
  const used = Math.min(g.in_use, g.capacity);
  box('used', 0, used);
  box('free', used, g.capacity - used);
  box('waiting', g.capacity, g.waiting, gap);
  return svg('svg', { class: `bar ${g.kind}`, viewBox: `0 0 ${width} ${height}`, preserveAspectRatio: 'none', 'aria-hidden': 'true', focusable: 'false' }, ...shapes);
}

const clock = new Intl.DateTimeFormat(undefined, { hour: '2-digit', minute: '2-digit', second: '2-digit', hourCycle: 'h23' });
let shownCalls = [];

// calls puts new calls in front of those that are shown, and takes away those that are no longer.
function calls(list, everybody) {
  $('calls-empty').textContent = list.length ? '' : everybody ? 'No call has ended since the bridge was started.' : 'No call of yours has ended since the bridge was started.';
  if (!list.length) {
    $('calls').replaceChildren();
    shownCalls = [];
    return;
  }
  const keys = list.map((c) => JSON.stringify(c));
  let body = $('calls').querySelector('tbody');
  if (!body) {
    $('calls').replaceChildren(table('calls', `The latest calls ${everybody ? 'of all callers' : 'that you made'}, newest first`, ['Time', 'Tool', 'Outcome', 'Took', 'In → out', 'Request'], []));
    body = $('calls').querySelector('tbody');
    shownCalls = [];
  }
  let fresh = shownCalls.length ? keys.indexOf(shownCalls[0]) : -1;
  if (fresh < 0) {
    body.replaceChildren();
    fresh = keys.length;
  }
  body.prepend(...list.slice(0, fresh).map(call));
  while (body.rows.length > list.length) body.lastElementChild.remove();
  shownCalls = keys;
}

// What is not the fault of a server, where no status says so.
const callers = new Set(['canceled', 'forbidden', 'invalid-arguments', 'malformed-request', 'not-found', 'rate-limited', 'tool-error']);

function call(c) {
  const level = !c.code ? 'fine' : c.status ? (c.status >= 500 ? 'broken' : 'warn') : callers.has(c.code) ? 'warn' : 'broken';
  return row(['Time', 'Tool', 'Outcome', 'Took', 'In → out', 'Request'], [
    level,
    el('time', { datetime: c.at, title: new Date(c.at).toLocaleString() }, clock.format(new Date(c.at))),
    [el('span', { class: 'handle' }, c.handle), ` ${c.name}`, c.kind === 'prompt' && el('span', { class: 'quiet' }, ' (prompt)')],
    [el('span', { class: 'state', 'data-level': level }, c.code || 'ok'), c.status ? el('span', { class: 'quiet' }, ` ${c.status}`) : null],
    words.took(c.ms),
    `${words.size(c.in)} → ${words.size(c.out)}`,
    el('code', { title: c.id }, c.id),
  ]);
}

// tools draws the tools of each server; the names of one only while it is unfolded.
export function tools(list) {
  const open = new Set([...document.querySelectorAll('#tools details[open]')].map((d) => d.dataset.handle));
  const some = list.filter((s) => s.tools.length);
  part('tools', some, () => $('tools').replaceChildren(...(some.length ? some.map((s) => server(s, open.has(s.handle))) : [el('p', { class: 'quiet' }, 'There are none to see.')])));
}

function server(s, open) {
  const docs = `${root}tools/${encodeURIComponent(s.handle)}/docs`;
  const unfold = el('details', { 'data-handle': s.handle }, el('summary', { 'data-key': `tools ${s.handle}` }, el('span', { class: 'handle' }, s.handle), el('span', { class: 'quiet' }, ` · ${s.tools.length} tool${s.tools.length === 1 ? '' : 's'}`)));
  const fill = () => {
    unfold.querySelector('.names')?.remove();
    if (!unfold.open) return;
    unfold.append(el('div', { class: 'names' },
      el('p', {}, el('a', { href: docs }, `Open ${s.handle} in Swagger UI`)),
      el('ul', {}, ...s.tools.slice(0, shownTools).map(([name, operation]) => el('li', {}, el('a', { href: `${docs}#/${encodeURIComponent(s.handle)}/${encodeURIComponent(operation)}` }, name || '(no name)')))),
      s.tools.length > shownTools && el('p', { class: 'quiet' }, `and ${s.tools.length - shownTools} more there`)));
  };
  unfold.addEventListener('toggle', fill);
  unfold.open = open;
  return unfold;
}

// ---- elements

// table makes a table with roles of its own, which it keeps where styles lay it out as blocks.
function table(id, caption, heads, rows) {
  return el('table', { role: 'table', class: id },
    el('caption', { class: 'unseen' }, caption),
    el('thead', { role: 'rowgroup' }, el('tr', { role: 'row' }, ...heads.map((h) => el('th', { role: 'columnheader', scope: 'col' }, h)))),
    el('tbody', { role: 'rowgroup' }, ...rows.map((r) => row(heads, r))));
}

function row(heads, [level, ...cells]) {
  return el('tr', { role: 'row', 'data-level': level }, ...cells.map((c, i) => el(i === 0 ? 'th' : 'td', { role: i === 0 ? 'rowheader' : 'cell', ...(i === 0 && { scope: 'row' }), 'data-head': heads[i] }, ...[c].flat())));
}

function moment(x) {
  return x.until ? el('time', { datetime: x.until, 'data-until': x.until }) : x;
}

function el(name, attributes, ...children) {
  return fill(document.createElement(name), attributes, children);
}

function svg(name, attributes, ...children) {
  return fill(document.createElementNS('http://www.w3.org/2000/svg', name), attributes, children);
}

function fill(e, attributes, children) {
  for (const [k, v] of Object.entries(attributes)) e.setAttribute(k, v);
  e.append(...children.filter((c) => c !== null && c !== undefined && c !== false && c !== ''));
  return e;
}
