// How the search ranks pages that have the words of a query: guides before lists and histories.
// Names, headings and index entries that are the query itself keep their rank on every page.
// Sphinx adds this to the built site; the weights below are those of its own scorer.
const DEMOTED = [
  [/^(CHANGELOG|CONTRIBUTING|SECURITY|README|api|architecture|command|server-faults)$/, 11],
  [/^reference\/(error-|advisories|log-records|models\/|spark-|pipeline)/, 11],
  [/^reference\//, 1],
];
var Scorer = {
  score: ([page, , , , score, , kind]) => {
    const found = kind === "text" && DEMOTED.find(([pattern]) => pattern.test(page));
    return found ? score - found[1] : score;
  },
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
