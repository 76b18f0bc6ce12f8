#!/usr/bin/env bash
# Runs one command of the image as a task of its own, and prints what it wrote; see ecs/README.md.
set -euo pipefail

usage() {
    cat <<'END'
Usage: ecs/run.sh PARAMETERS api|worker|migration COMMAND [ARGUMENT…]

The command runs with the settings, the network and the role of that service; as `migration` it is the
owner of the database:
  ecs/run.sh ecs/parameters worker manage preflight worker
  ecs/run.sh ecs/parameters api manage dlq list
A variable for this one run: ENVIRONMENT='NAME=VALUE' ecs/run.sh …
END
}

here=$(CDPATH='' cd -- "$(dirname "${BASH_SOURCE[0]}")" && pwd)
program=run started_by=run dry_run=false
# shellcheck source=ecs/aws.sh
source "$here/aws.sh"
[[ $# -ge 3 && $2 =~ ^(api|worker|migration)$ ]] || { usage >&2; exit 2; }
read_parameters "$1"
service=$2
shift 2
[[ $(parameter Foundation false) != true ]] || add_foundation

quoted() { # TEXT: as a JSON string
    local text=${1//\\/\\\\}
    text=${text//\"/\\\"}
    text=${text//$'\n'/\\n}
    printf '"%s"' "${text//$'\t'/\\t}"
}

command=
for argument in "$@"; do
    command+=${command:+, }$(quoted "$argument")
done
variable=
if [[ -n ${ENVIRONMENT:-} ]]; then
    hidden=$(quoted "${ENVIRONMENT#*=}")
    variable="{\"name\": $(quoted "${ENVIRONMENT%%=*}"), \"value\": $hidden}"
fi

group=$service
[[ $group != migration ]] || group=worker
start_task "$service" "$(output network "${group^}SecurityGroupId")" \
    "{\"containerOverrides\": [{\"name\": \"$service\", \"command\": [$command], \"environment\": [$variable]}]}" \
    || stop "ECS started no task"
trap 'printf "\nrun: it still runs. To end it: aws ecs stop-task --cluster %s --task %s\n" "$prefix" "$task" >&2; exit 130' INT
await_task "$task" "$service" >&2
trap - INT
task_log "$service" "$service" "$task" 1000
[[ $exit_code =~ ^[0-9]+$ ]] || stop "the task ended without an exit code: $stopped"
exit "$exit_code"
