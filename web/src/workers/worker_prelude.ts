/*
 * worker_prelude: the modules that the page and its workers share, in one chunk that all of them load. Workers import it whole, since the
 * bundler would make a chunk of each set of modules that the same scripts need.
 */
import "../model/chain.ts";
import "../model/escape_regex.ts";
import "../model/flame.ts";
import "../model/labels.ts";
import "../model/units.ts";
