// What the console says of servers, in words: how they are, why, and what the
// bridge does next.

const states = {
  connecting: 'Connecting',
  ready: 'Ready',
  idle: 'Idle',
  degraded: 'Degraded',
  failed: 'Failed',
  'needs-auth': 'Credentials refused',
  disabled: 'Disabled',
  'needs-caller': 'Needs a caller',
};

export const stateName = (s) => states[s.state] ?? s.state;

const ranks = ['broken', 'warn', 'pending', 'fine', 'off'];

// level is how bad it is: broken, warn, pending, fine or off.
export function level(s) {
  if (s.state === 'disabled') return 'off';
  if (s.state === 'failed' || s.state === 'needs-auth' || s.circuit?.state === 'open') return 'broken';
  if (s.state === 'degraded' || s.circuit?.state === 'half-open') return 'warn';
  if (s.state === 'connecting') return 'pending';
  return s.state === 'ready' ? 'fine' : 'off';
}

// worstFirst sorts servers by level, and by handle within one.
export function worstFirst(servers) {
  const rank = (s) => Math.min(ranks.indexOf(level(s)), 3); // what is idle stands among what is fine
  return servers.toSorted((a, b) => rank(a) - rank(b));
}

// reason is why a server is not well; empty if it is.
export function reason(s) {
  return s.last_error || (s.circuit?.state !== 'closed' && s.circuit?.reason) || '';
}

// next is what the bridge does about a server: a list of texts and of moments, {until},
// that are shown as the time left until then.
export function next(s) {
  const say = [];
  switch (s.state) {
    case 'degraded':
      say.push('Its last good list of tools is served. ');
      break;
    case 'needs-auth':
      say.push('Its credentials have to be renewed. ');
      break;
    case 'connecting':
      say.push('The first attempt is under way. ');
      break;
    case 'disabled':
      say.push('Switched off in the configuration.');
      break;
    case 'needs-caller':
      say.push('It is connected for each caller apart, and this page’s requests lack what that takes.');
      break;
  }
  // A call may try it as well, unless its circuit is open.
  const open = s.circuit?.state === 'open';
  const byCall = open ? '' : ', or by the next call';
  if (['failed', 'needs-auth', 'degraded', 'idle'].includes(s.state)) {
    const verb = s.state === 'idle' ? 'Connected again' : 'Tried again';
    if (s.next) say.push(`${verb} `, { until: s.next }, `${byCall}. `);
    else if (!open) say.push(`${verb} by the next call. `);
  }
  if (open) {
    say.push(s.next ? 'Calls fail fast until that works; one may try ' : 'Calls fail fast; one may try ', s.circuit.until ? { until: s.circuit.until } : 'later', '.');
  } else if (s.circuit?.state === 'half-open' && s.state === 'ready') {
    say.push('The next call tries whether it works again.');
  }
  return say;
}

// summary says in one sentence how all servers are, and how bad that is.
export function summary(servers) {
  const of = (l) => servers.filter((s) => level(s) === l);
  const n = servers.length;
  const some = (list, one, many) =>
    `${list.length} of ${n} server${n === 1 ? '' : 's'} ${list.length === 1 ? one : many}: ${list.slice(0, 3).map((s) => s.handle).join(', ')}${list.length > 3 ? ', …' : ''}`;
  if (of('broken').length) return { level: 'broken', text: some(of('broken'), 'is broken', 'are broken') };
  if (of('warn').length) return { level: 'warn', text: some(of('warn'), 'is not quite well', 'are not quite well') };
  if (of('pending').length) return { level: 'pending', text: some(of('pending'), 'is being connected', 'are being connected') };
  if (n === 0) return { level: 'off', text: 'There are no servers to see.' };
  return { level: 'fine', text: n === 1 ? 'The server is fine' : `All ${n} servers are fine` };
}

// lasting is a time in two units at most.
export function lasting(ms) {
  const s = Math.max(0, Math.round(ms / 1000));
  const parts = [
    [Math.floor(s / 86400), 'd'],
    [Math.floor(s / 3600) % 24, 'h'],
    [Math.floor(s / 60) % 60, 'min'],
    [s % 60, 's'],
  ];
  const first = parts.findIndex(([n]) => n > 0);
  if (first < 0) return '0 s';
  return parts
    .slice(first, first + 2)
    .filter(([n]) => n > 0)
    .map(([n, unit]) => `${n} ${unit}`)
    .join(' ');
}

export function took(ms) {
  if (ms < 10) return `${ms.toFixed(1)} ms`;
  return ms < 1000 ? `${Math.round(ms)} ms` : ms < 60_000 ? `${(ms / 1000).toFixed(1)} s` : lasting(ms);
}

export function size(bytes) {
  const units = ['B', 'kB', 'MB', 'GB'];
  let i = 0;
  while (bytes >= 1000 && i < units.length - 1) {
    bytes /= 1000;
    i++;
  }
  return `${i === 0 || bytes >= 100 ? Math.round(bytes) : bytes.toFixed(1)} ${units[i]}`;
}
