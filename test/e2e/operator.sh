# The first hour of an operator: operator.sh <account> <folder>. "Which devices are revoked, or were last seen in Germany?"
set -euo pipefail
account=$1
cd "$2"

# 1. From the account to the pool, by the ids that each list prints.
domain=$(agentauth domains list --account "$account" -o id --limit 1)
pool=$(agentauth pools list --domain "$domain" -o id --limit 1)
echo "$pool" >pool.txt

# 2. The answer as a spreadsheet, in one command; the two flags alone are "revoked and in Germany".
agentauth devices list --pool "$pool" -o csv --csv-bom --columns id,status,last_seen.country_code \
  --jq '.[] | select(.status == "revoked" or .last_seen.country_code == "DE")' >devices.csv
agentauth devices list --pool "$pool" -o id --status revoked --country DE,AT >revoked-here.txt

# 3. One of them, and the pool in numbers: a page for others.
first=$(sed -n '2s/,.*//p' devices.csv)
agentauth devices get "$first" --pool "$pool" --json >device.json
agentauth devices report --pool "$pool" --html report.html --json >report.json

# 4. A list that is interrupted ends with 7, and names the command for the rest: together they are the whole.
agentauth sandbox fault 503:path=device,after=1 >fault.json
code=0
agentauth devices list --pool "$pool" -o id --page-size 20 --retries 0 --concurrency 1 >part.txt 2>part.err || code=$?
[ "$code" -eq 7 ]
eval "$(sed -n 's/^hint: continue with: //p' part.err)" >rest.txt
cat part.txt rest.txt >ids.txt
