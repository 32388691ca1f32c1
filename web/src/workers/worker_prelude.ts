/*
 * worker_prelude: the modules that the page and its workers share, in one chunk. Every worker
 * imports all of it, because otherwise the bundler would create a chunk for each set of modules
 * that the same scripts need.
 */
import "../model/rules/chain.ts";
import "../model/search/escape_regex.ts";
import "../model/tree/flame.ts";
import "../model/rules/labels.ts";
import "../model/text/units.ts";
