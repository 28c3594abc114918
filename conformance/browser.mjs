// Stands for the person's browser: opens the address and goes where it leads.
await (await fetch(process.argv[2])).text();
