// Every page of the console, in the order of the navigation: each module registers its own.

import "./overview.js";
import "./calls.js";
import "./timeline.js";
import "./try.js";
import "./questions.js";
import "./servers.js";
import "./sessions.js";
import "./cost.js";
