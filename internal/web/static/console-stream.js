// Reads server-sent events by fetch, since EventSource can send no credential.

// A Refused is an answer that is no stream.
export class Refused extends Error {
  constructor(status, detail, retryAfter) {
    super(detail);
    this.status = status;
    this.retryAfter = retryAfter; // seconds, or 0
  }
}

const patience = 45_000; // milliseconds without a byte; the bridge sends one at least every 15 s
const most = 16 << 20; // characters of one event

// follow reads the events at url and gives each to on(type, data), until the stream
// ends. It throws when signal aborts, when there is no answer, or a Refused.
export async function follow(url, key, signal, on) {
  const silence = new AbortController();
  let timer;
  const heard = () => {
    clearTimeout(timer);
    timer = setTimeout(() => silence.abort(new Error('silence')), patience);
  };
  heard();
  try {
    const answer = await fetch(url, {
      headers: { Accept: 'text/event-stream', ...(key && { Authorization: `Bearer ${key}` }) },
      cache: 'no-store',
      signal: AbortSignal.any([signal, silence.signal]),
    });
    if (!answer.ok || !(answer.headers.get('Content-Type') ?? '').startsWith('text/event-stream')) {
      throw await refusal(answer);
    }
    let rest = '';
    const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      heard();
      const blocks = (rest + value).split('\n\n');
      rest = blocks.pop();
      if (rest.length > most) throw new Error('an event without end');
      blocks.forEach((block) => dispatch(block, on));
    }
  } finally {
    clearTimeout(timer);
  }
}

function dispatch(block, on) {
  let type = '';
  const data = [];
  for (const line of block.split('\n')) {
    if (line.startsWith('event: ')) type = line.slice(7);
    if (line.startsWith('data: ')) data.push(line.slice(6));
  }
  if (type) on(type, data.join('\n'));
}

async function refusal(answer) {
  let detail = `HTTP ${answer.status}`;
  try {
    detail = (await answer.json()).detail ?? detail;
  } catch {
    // Something between here and the bridge answered.
  }
  return new Refused(answer.status, detail, Number(answer.headers.get('Retry-After')) || 0);
}
