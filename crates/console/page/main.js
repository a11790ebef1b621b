// Starts the page: the session, and then the pages.

import "./pages.js";

import { ConsoleApp } from "./app.js";
import { announce } from "./dom.js";
import { acceptFiles } from "./record.js";
import { SignedOut, openSession } from "./session.js";
import { showSignIn, startSignIn } from "./sign_in.js";

async function main() {
  const app = new ConsoleApp();
  acceptFiles((name, text) => app.openRecord(name, text), announce);
  const connect = async () => {
    try {
      await app.connect();
    } catch (error) {
      showSignIn(error instanceof SignedOut ? "The session has ended." : "The hub does not answer.");
    }
  };
  startSignIn(connect);
  if (await openSession()) await connect();
  else showSignIn("This page needs a link of its own.");
}

void main();
