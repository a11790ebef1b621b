// Every page of the console, in the order of the navigation: each module registers its own.

import "./overview.js";
import "./calls.js";
import "./servers.js";
import "./sessions.js";
import "./cost.js";
