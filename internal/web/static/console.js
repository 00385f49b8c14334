// The console: keeps the stream of events open while somebody looks, and says so
// when it is not.
import { follow, Refused } from './console-stream.js';
import { snapshot, tick, tools } from './console-draw.js';

const $ = (id) => document.getElementById(id);
const events = new URL(`${document.body.dataset.root}console/events`, document.baseURI).href;

// As on the other pages, the key stays in this page's memory: on a loopback address
// the browser's storage is shared with whatever listens there next.
let key = '';

run();
setInterval(() => {
  if (!document.hidden) tick();
}, 1000);

async function run() {
  for (let failures = 0; ; ) {
    await visible();
    say('pending', 'Connecting…');
    const hide = new AbortController();
    const hidden = () => document.hidden && hide.abort();
    document.addEventListener('visibilitychange', hidden);
    let wait = 0;
    let why = 'The connection ended';
    try {
      await follow(events, key, hide.signal, (type, data) => {
        failures = 0;
        if (type === 'snapshot') snapshot(JSON.parse(data));
        if (type === 'tools') tools(JSON.parse(data));
        if (type === 'snapshot') {
          $('all').hidden = false;
          say('fine', 'Live');
          fresh(true);
        }
      });
    } catch (e) {
      if (e instanceof Refused && (e.status === 401 || e.status === 403)) {
        await askForKey(e);
        continue;
      }
      if (e instanceof Refused) {
        why = e.message.replace(/\.$/, '');
        wait = 1000 * e.retryAfter;
      } else {
        why = 'The bridge cannot be reached';
      }
    } finally {
      document.removeEventListener('visibilitychange', hidden);
    }
    fresh(false);
    if (hide.signal.aborted) continue; // nobody looks: no stream, and no reason to try
    failures++;
    await pause(why, Math.max(wait, Math.min(30_000, 500 * 2 ** failures) * (0.75 + Math.random() / 2)));
  }
}

// fresh shows whether what is on the page is how it is now.
function fresh(yes) {
  $('all').classList.toggle('stale', !yes);
}

function say(level, text) {
  $('link-text').dataset.level = level;
  if ($('link-text').textContent !== text) $('link-text').textContent = text;
  if (level !== 'broken' && document.activeElement === $('retry')) $('main').focus({ preventScroll: true });
  $('retry').hidden = level !== 'broken';
  $('forget').hidden = !key;
}

// visible waits until the page is looked at.
function visible() {
  if (!document.hidden) return undefined;
  return new Promise((done) => {
    document.addEventListener('visibilitychange', done, { once: true });
  });
}

// pause waits before the next attempt, and says for how long. It ends early when
// somebody asks for that, comes back to the page, or the network does.
function pause(why, ms) {
  const until = Date.now() + ms;
  return new Promise((done) => {
    const ends = new AbortController();
    const left = () => {
      const s = Math.ceil((until - Date.now()) / 1000);
      if (s <= 0) end();
      else say('broken', `${why}. Trying again in ${s} s.`);
    };
    const timer = setInterval(left, 250);
    const end = () => {
      clearInterval(timer);
      ends.abort();
      done();
    };
    $('retry').addEventListener('click', end, { signal: ends.signal });
    window.addEventListener('online', end, { signal: ends.signal });
    document.addEventListener('visibilitychange', end, { signal: ends.signal });
    $('news').textContent = `${why}. What the page shows may be old.`;
    left();
  });
}

// askForKey shows a form in place of everything else, until a key is given.
function askForKey(refused) {
  say('pending', refused.status === 403 ? 'Not allowed' : 'A key is needed');
  $('all').hidden = true;
  $('key-label').textContent =
    refused.status === 403 ? `${refused.message} Another key or token:` : key ? 'This key is not right, or no longer. Another one:' : 'The console needs an API key or a token:';
  key = '';
  $('forget').hidden = true;
  $('ask').hidden = false;
  $('key-input').focus();
  return new Promise((done) => {
    $('key').addEventListener(
      'submit',
      (e) => {
        e.preventDefault();
        key = $('key-input').value.trim();
        $('key-input').value = '';
        $('ask').hidden = true;
        $('main').focus();
        done();
      },
      { once: true },
    );
  });
}

// A page that is loaded again knows no key.
$('forget').addEventListener('click', () => location.reload());
