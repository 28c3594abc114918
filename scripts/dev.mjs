// Runs the command line from its sources: npm run dev -- devices list --pool <pool_id>
import { main } from "../src/cli/main.ts";

process.exitCode = await main(process.argv.slice(2), process);
