// The browser tests: a real server, the distribution's Chromium (CHROMIUM names another program),
// and pages that are used like people use them. Two browsers share the server, because pages spend
// much time waiting.
//
//   cd web && npm run test:browser [-- part of a test's name | --short | --long]
//
// --long runs the tests of long_tests.mjs, --short the others.
//
// BUILD chooses build/<BUILD>/perfoliod.
//
// Screenshots go to build/screenshots. The last line states the numbers of passed, failed and
// skipped tests.
import { launch, Runner } from "./harness.mjs";
import { Server } from "./server.mjs";
import { testAccess } from "./access.mjs";
import { testAccount } from "./account.mjs";
import { testComments } from "./comments.mjs";
import { testContrast } from "./contrast.mjs";
import { testDiff } from "./diff.mjs";
import { testEmbed } from "./embed.mjs";
import { testExplore } from "./explore.mjs";
import { testExport } from "./export.mjs";
import { testFirefox } from "./firefox.mjs";
import { testFilter } from "./filter.mjs";
import { testFocus } from "./focus.mjs";
import { testGraph } from "./graph.mjs";
import { testHostile } from "./hostile.mjs";
import { testIcicle } from "./icicle.mjs";
import { testKeyboard } from "./keyboard.mjs";
import { testLabels } from "./labels.mjs";
import { testLooks } from "./looks.mjs";
import { testPreview } from "./preview.mjs";
import { testRedact } from "./redact.mjs";
import { testRetention } from "./retention.mjs";
import { testSettings } from "./settings.mjs";
import { testSources } from "./sources.mjs";
import { testStates } from "./states.mjs";
import { testSymbols } from "./symbols.mjs";
import { testUpdated } from "./updated.mjs";
import { testUpload } from "./upload.mjs";
import { testViewer } from "./viewer.mjs";
import { testZoom } from "./zoom.mjs";

const runner = new Runner(process.argv[2]);
let server = null;
/**
 * Runs suites one after the other in their own browser, because a browser has only one clipboard.
 */
async function runSequentially(suites) {
  const browser = await launch();
  try {
    for (const suite of suites) await suite(runner, browser, server);
  } finally {
    await browser.close();
  }
}

process.on("unhandledRejection", (error) => {
  runner.failed++;
  console.log(
    "not ok - unhandled rejection\n" + String(error?.stack ?? error).replace(/^/gm, "    "),
  );
});

try {
  server = await Server.start();
  // All suites that change or count the team's objects (people, invitations, rules, received
  // profiles) are in one lane.
  const lanes = [
    [
      testUpload,
      testViewer,
      testIcicle,
      testFilter,
      testExport,
      testGraph,
      testStates,
      testKeyboard,
      testDiff,
      testAccess,
      testRedact,
      testEmbed,
      testLabels,
      testUpdated,
      testFirefox,
    ],
    [
      testExplore,
      testSources,
      testRetention,
      testSettings,
      testAccount,
      testFocus,
      testPreview,
      testSymbols,
      testComments,
      testContrast,
      testLooks,
      testZoom,
      testHostile,
    ],
  ];
  for (const lane of await Promise.allSettled(lanes.map(runSequentially)))
    if (lane.status === "rejected") throw lane.reason;
} catch (error) {
  runner.failed++;
  console.log(error?.stack ?? error);
} finally {
  if (runner.failed && server) console.log(`--- end of the server's log\n${server.log()}`);
  const status = await server?.stop();
  if (server && status !== 0) {
    runner.failed++;
    console.log(`not ok - the server stopped with ${status}`);
  }
}
for (const entry of runner.unknownEntries()) {
  runner.failed++;
  console.log(`not ok - long_tests.mjs: no test begins with "${entry}"`);
}
console.log(
  `${runner.passed} passed, ${runner.failed} failed` +
    (runner.skipped ? `, ${runner.skipped} skipped` : "") +
    (runner.left ? `, ${runner.left} left` : ""),
);
process.exitCode = runner.failed ? 1 : 0;
