// Print the pages that the search of the site finds for each query, best first, as JSON:
// node tests/site_search.js build/site "max ack pending"
const fs = require("fs");
const path = require("path");
const vm = require("vm");

const [site, ...queries] = process.argv.slice(2);
const context = vm.createContext({
  document: { getElementById: () => null },
  localStorage: { setItem: () => undefined },
  _: (text) => text,
  _ready: () => undefined,
  queries,
});
context.window = context;
const run = (file) => vm.runInContext(fs.readFileSync(path.join(site, file), "utf-8"), context);
// The highlighting is off: it needs the elements of a page.
vm.runInContext("const SPHINX_HIGHLIGHT_ENABLED = false;", context);
["_static/language_data.js", "_static/searchtools.js", "searchindex.js"].forEach(run);
const found = vm.runInContext(
  `queries.map((query) => {
    const results = Search._performSearch(...Search._parseQuery(query));
    return results.reverse().map(([page]) => page);
  })`,
  context,
);
process.stdout.write(JSON.stringify(found.map((pages) => [...new Set(pages)])));
