// Starts Swagger UI on the page that loads it. It stands in a file because the
// page's content security policy runs no inline script; what differs from page
// to page is in the data attributes of its root element.
'use strict';

(() => {
  const root = document.getElementById('swagger-ui');

  const dark = window.matchMedia('(prefers-color-scheme: dark)');
  const follow = () => document.documentElement.classList.toggle('dark-mode', dark.matches);
  dark.addEventListener('change', follow);
  follow();

  const address = new URL(root.dataset.document, document.baseURI).href;
  const large = 100; // operations that are shown at once without waiting long
  const several = 50; // of a larger document, at a time
  let key = ''; // that the reader gave, for the document; calls get it by the page's own dialog
  let ui;
  open();

  // open shows the document, or asks for a key if it is not for everybody.
  async function open() {
    let status = 0;
    let spec;
    try {
      const answer = await fetch(address, { headers: credential() });
      status = answer.status;
      if (status === 503 && answer.headers.has('Retry-After')) {
        await answer.arrayBuffer(); // else the browser takes it for broken off
        // Its servers are still being connected.
        root.textContent = 'Waiting for the servers to be connected…';
        setTimeout(open, 1000 * Math.min(10, Number(answer.headers.get('Retry-After')) || 1));
        return;
      }
      if (answer.ok) spec = await answer.json();
      else await answer.arrayBuffer();
    } catch {
      // The page itself will tell.
    }
    if (status === 401) {
      askForKey();
      return;
    }
    root.textContent = '';
    if (!spec) show({ url: address });
    else if (operations(spec).length > large) showParts(spec);
    else show({ spec });
  }

  function credential() {
    return key ? { Authorization: `Bearer ${key}` } : {};
  }

  function askForKey() {
    const form = document.createElement('form');
    form.id = 'key';
    const label = document.createElement('label');
    label.textContent = key ? 'This key is not right. Another one:' : 'This document needs an API key or a token:';
    const input = document.createElement('input');
    input.type = 'password';
    input.required = true;
    input.autocomplete = 'off';
    const button = document.createElement('button');
    button.textContent = 'Open';
    label.append(input);
    form.append(label, button);
    form.addEventListener('submit', (e) => {
      e.preventDefault();
      key = input.value.trim();
      open();
    });
    root.replaceChildren(form);
    input.focus();
  }

  // show starts Swagger UI with a document, or with the address of one.
  function show(what, more) {
    ui = SwaggerUIBundle({
      domNode: root,
      ...what,
      requestInterceptor: (request) => {
        if (request.loadSpec) Object.assign(request.headers, credential());
        return request;
      },
      plugins: [exactAnswers],
      // A link to this page must not choose another document or configuration.
      queryConfigEnabled: false,
      validatorUrl: null, // would send the document's address to a stranger
      deepLinking: true,
      filter: true,
      tryItOutEnabled: true,
      displayRequestDuration: true,
      // With thousands of tools, what is closed is not rendered.
      docExpansion: 'none',
      onComplete: () => {
        if (key) authorize();
        openFew();
      },
      defaultModelsExpandDepth: 0,
      // Keys stay in this page's memory. On a loopback address the browser's
      // storage outlives the bridge and is shared with whatever listens there next.
      persistAuthorization: false,
      ...more,
    });
    // What is relative in the document is so to its address, wherever it came from.
    ui.specActions.updateUrl(address);
  }

  // authorize gives the key to the calls, too.
  function authorize() {
    for (const [name, scheme] of ui.specSelectors.securityDefinitions() ?? []) {
      if (scheme.get('scheme') === 'bearer') ui.preauthorizeApiKey(name, key);
    }
  }

  // openFew opens the lists of operations where they fit on a few screens.
  function openFew() {
    const tags = ui.specSelectors.taggedOperations();
    if (tags.reduce((n, tag) => n + tag.get('operations').size, 0) > 60) {
      return;
    }
    tags.forEach((_, name) => { ui.layoutActions.show(['operations-tag', name], true); });
  }

  // ---- large documents

  // operations lists those of a document: {id, tag, text, path, method}.
  function operations(spec) {
    const all = [];
    for (const [path, item] of Object.entries(spec.paths ?? {})) {
      for (const [method, o] of Object.entries(item)) {
        if (o?.responses) all.push({ id: o.operationId, tag: o.tags?.[0] ?? '', text: `${path}\n${o.operationId}\n${o.summary}\n${o.description}`.toLowerCase(), path, method });
      }
    }
    return all;
  }

  // part is the document of some of its operations, with the components that these need.
  function part(spec, some) {
    const paths = {};
    for (const { path, method } of some) (paths[path] ??= {})[method] = spec.paths[path][method];
    const components = { securitySchemes: spec.components?.securitySchemes };
    const need = (value) => {
      if (typeof value !== 'object' || value === null) return;
      for (const [k, v] of Object.entries(value)) {
        const [, kind, name] = (k === '$ref' && typeof v === 'string' && v.match(/^#\/components\/(\w+)\/([^/]+)/)) || [];
        if (!name) need(v);
        else if (!components[kind]?.[name] && spec.components?.[kind]?.[name]) {
          (components[kind] ??= {})[name] = spec.components[kind][name];
          need(components[kind][name]);
        }
      }
    };
    need(paths);
    const tags = new Set(some.map((o) => o.tag));
    return { ...spec, paths, components, tags: spec.tags?.filter((t) => tags.has(t.name)) };
  }

  // showParts shows some operations of a document at a time, since Swagger UI takes
  // minutes for thousands: those of one server, those that are searched for, or the first.
  function showParts(spec) {
    const all = operations(spec);
    const byTag = Map.groupBy(all, (o) => o.tag);
    const form = element('form', { id: 'parts', role: 'search' });
    const server = element('select', { id: 'parts-server' }, element('option', { value: '' }, `all (${all.length})`));
    [...byTag].forEach(([tag, list], i) => server.append(element('option', { value: i + 1 }, `${tag} (${list.length})`)));
    const search = element('input', { id: 'parts-search', type: 'search', autocomplete: 'off', spellcheck: 'false' });
    const count = element('p', { role: 'status' });
    form.append(
      element('p', {}, `This document has ${all.length} operations; some of them are shown at a time.`),
      element('label', {}, 'Server ', server), element('label', {}, 'Search ', search), count);
    root.before(form);

    const lists = [all, ...byTag.values()];
    // linked is the operation that the page's address leads to, if it does to one.
    const linked = () => {
      let link;
      try {
        link = decodeURIComponent(location.hash);
      } catch {
        return undefined; // somebody's percent sign
      }
      const [tag, id] = link.slice(2).split('/');
      return all.find((o) => o.tag === tag && o.id === id);
    };
    // choose makes the document of what is to be shown; an operation that was linked to is there in any case.
    const choose = (first) => {
      if (first) server.selectedIndex = 1 + [...byTag.keys()].indexOf(first.tag);
      const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
      const found = lists[server.selectedIndex].filter((o) => o !== first && words.every((w) => o.text.includes(w)));
      const some = [...(first ? [first] : []), ...found].slice(0, several);
      count.textContent = `${some.length} of ${found.length + (first ? 1 : 0)} shown`;
      return part(spec, some);
    };
    show({ spec: choose(linked()) }, { filter: false });
    const again = (first) => {
      ui.specActions.updateSpec(JSON.stringify(choose(first)));
      openFew();
    };
    let typing;
    search.addEventListener('input', () => {
      clearTimeout(typing);
      typing = setTimeout(() => again(), 300);
    });
    server.addEventListener('change', () => again());
    form.addEventListener('submit', (e) => e.preventDefault());
    window.addEventListener('hashchange', () => linked() && again(linked()));
  }

  function element(name, attributes, ...children) {
    const e = document.createElement(name);
    for (const [k, v] of Object.entries(attributes)) e.setAttribute(k, v);
    e.append(...children);
    return e;
  }

  // A plugin that shows JSON answers as they came but for their white space.
  // Swagger UI itself parses and prints them, which changes long numbers: an
  // identifier copied from the page would be another one.
  function exactAnswers() {
    return {
      wrapComponents: {
        responseBody: (Original, { React }) => (props) => {
          const { content, contentType, getComponent } = props;
          if (typeof content !== 'string' || !/json/i.test(contentType) || !isJSON(content)) {
            return React.createElement(Original, props);
          }
          return React.createElement('div', null,
            React.createElement('h5', null, 'Response body'),
            React.createElement(getComponent('HighlightCode', true),
              { language: 'json', downloadable: true, fileName: 'response.json', canCopy: true },
              indent(content)));
        },
      },
    };
  }

  function isJSON(text) {
    try {
      JSON.parse(text);
      return true;
    } catch {
      return false;
    }
  }

  // indent lays out JSON, which must be valid, and leaves its tokens as they are.
  function indent(json) {
    const parts = [];
    let depth = 0;
    let previous = '';
    const newLine = () => parts.push('\n', '  '.repeat(depth));
    const opens = (token) => token === '{' || token === '[';
    for (const [token] of json.matchAll(/"[^"\\]*(?:\\.[^"\\]*)*"|[{}[\]:,]|[^\s{}[\]:,"]+/g)) {
      if (token === '}' || token === ']') {
        depth--;
        if (!opens(previous)) newLine();
      } else if (opens(previous) || previous === ',') {
        newLine();
      }
      if (opens(token)) depth++;
      parts.push(token === ':' ? ': ' : token);
      previous = token;
    }
    return parts.join('');
  }
})();
