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
  let key = ''; // that the reader gave, for the document; calls get it by the page's own dialog
  let ui;
  open();

  // open shows the document, or asks for a key if it is not for everybody.
  async function open() {
    let status = 0;
    try {
      const answer = await fetch(address, { method: 'HEAD', headers: credential() });
      await answer.arrayBuffer(); // else the browser takes it for broken off
      status = answer.status;
      if (status === 503 && answer.headers.has('Retry-After')) {
        // Its servers are still being connected.
        root.textContent = 'Waiting for the servers to be connected…';
        setTimeout(open, 1000 * Math.min(10, Number(answer.headers.get('Retry-After')) || 1));
        return;
      }
    } catch {
      // The page itself will tell.
    }
    if (status === 401) {
      askForKey();
    } else {
      root.textContent = '';
      show();
    }
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

  function show() {
    ui = SwaggerUIBundle({
      domNode: root,
      url: address,
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
    });
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
