// Replaces the user's browser: opens the URL and follows its redirects.
await (await fetch(process.argv[2])).text();
