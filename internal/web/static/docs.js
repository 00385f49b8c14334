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

  const ui = SwaggerUIBundle({
    domNode: root,
    url: new URL(root.dataset.document, document.baseURI).href,
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
    onComplete: openFew,
    defaultModelsExpandDepth: 0,
    // Keys stay in this page's memory. On a loopback address the browser's
    // storage outlives the bridge and is shared with whatever listens there next.
    persistAuthorization: false,
  });

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
