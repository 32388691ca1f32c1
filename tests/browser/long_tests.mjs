// The browser tests that `make test-long` runs: those that need long, and variants of others. An
// entry is the beginning of a test's name.
export const longTests = [
  // All tests of a suite.
  "high contrast",
  "hostile labels",
  "Firefox",
  // Variants of tests that run in other sizes, looks and formats.
  "dark: ",
  "pages of each kind fit 320",
  "pages of each kind fit 600",
  "pages of each kind fit 860",
  "menus stand in the window at every width and height",
  // Large profiles and files.
  "a large upload that was cut off goes on after a reload",
  "a million nodes",
  "a name of a million letters",
  "a profile of many nodes",
  "cancelled while parts are being completed",
  "odd profiles",
  // Many profiles, groupings or rules in turn.
  "an “other” box opens under rules",
  "chains equal plain arithmetic",
  "files and pictures of a link have the page's numbers",
  "rules on files and binaries of a name that is in several",
  "symbols: a link that was made before names came",
  "symbols: continuous profiles tell it too",
  "symbols: files lead to the team's repository",
  "symbols: the line about missing names moves nothing",
  "symbols: the page reports that an old expression",
  "symbols: the view chooses the form of names",
  "symbols: zoom and mark survive other names",
  // Other programs, servers that are away, pages without a network.
  "a comparison of which a side is gone",
  "a saved page opens from the disk without a network",
  "the lines to paste work as they are shown",
  "while the server is away that is said",
];
