# shellcheck shell=bash disable=SC2034,SC2154
# What deploy.sh and run.sh share: the parameters file, calls that are printed, stacks, one-off tasks.
# Sourced by them; they set `here`, `dry_run`, `program` and `started_by`, and may set `hidden`.

# Nothing waits at a pager, what AWS throttles is tried again, and a role's credentials come from the
# region: those of STS's global endpoint, which CLI 1 asks, are not taken in an opt-in region.
# https://repost.aws/knowledge-center/iam-validate-access-credentials
export AWS_PAGER='' AWS_RETRY_MODE=standard AWS_MAX_ATTEMPTS=6 AWS_STS_REGIONAL_ENDPOINTS=regional

exec 3>&2 # where calls are printed, also where the errors of one are looked at

step() { printf '\n== %s\n' "$*"; }

stop() { # MESSAGE…: say what is wrong and end
    printf '%s: %s\n' "$program" "$*" >&2
    exit 1
}

# macOS has 3.2, which knows no associative arrays.
((BASH_VERSINFO[0] * 100 + BASH_VERSINFO[1] >= 404)) || stop "this is bash $BASH_VERSION: 4.4 or newer is needed"

run() { # A call that changes something, or waits: printed, and made unless --dry-run.
    printf '+'
    printf ' %q' "$@"
    printf '\n'
    $dry_run || "$@"
}

ask() { # PLACEHOLDER COMMAND…: prints what the command answers, or the placeholder when --dry-run.
    local placeholder=$1
    shift
    # What `hidden` holds may be a password.
    { printf '+'; printf ' %q' "${@//"${hidden:-}"/...}"; printf '\n'; } >&3
    if $dry_run; then
        printf '%s\n' "$placeholder"
    else
        "$@"
    fi
}

learn() { # PLACEHOLDER COMMAND…: as ask, into `answer`, and what it complains of into `error`.
    # Apart, as the CLI also warns where it has an answer.
    local complaints status=0
    complaints=$(mktemp)
    answer=$(ask "$@" 2> "$complaints") || status=$?
    error=$(< "$complaints")
    rm "$complaints"
    return $status
}

# -- Parameters ------------------------------------------------------------------------------------

known_parameters() { # The names in the Parameters section of every template.
    awk '/^[A-Za-z]/ {inside = /^Parameters:/} inside && /^  [A-Za-z]+:/ {gsub(/[ :]/, ""); print}' \
        "$here"/*.yaml | sort -u
}

known_values() { # Name<TAB>what it may be: `a number`, or a list as YAML writes it in one line
    awk '/^[A-Za-z]/ {inside = /^Parameters:/} inside && /^  [A-Za-z]+:/ {gsub(/[ :]/, ""); name = $0}
        inside && /^    Type: Number$/ {print name "\ta number"}
        inside && /^    AllowedValues: / {sub(/^    AllowedValues: /, ""); print name "\t" $0}' "$here"/*.yaml
    printf '%s\t[true, false]\n' Foundation Waf
}

may_be() { # VALUE WHAT: whether that may be its value
    local rest=${2#\[}
    [[ $2 != "a number" ]] || { [[ $1 =~ ^(0|[1-9][0-9]*)$ ]]; return; }
    rest=${rest%\]},
    while [[ $rest =~ ^[[:space:]]*(\"([^\"]*)\"|([^,\"]*)),(.*)$ ]]; do
        [[ $1 != "${BASH_REMATCH[2]}${BASH_REMATCH[3]}" ]] || return 0
        rest=${BASH_REMATCH[4]}
    done
    return 1
}

read_parameters() { # FILE: fills `parameters`; stops at a line that is not Key=Value or names nothing.
    local file=$1 line key value number=0
    local -A known=() seen=() values=()
    [[ -r $file ]] || stop "no parameters file $file"
    # The last three are deploy.sh's own.
    for key in $(known_parameters) Foundation Waf CloudFormationRoleArn; do known[$key]=yes; done
    while IFS=$'\t' read -r key value; do values[$key]=$value; done < <(known_values)
    parameters=()
    while IFS= read -r line || [[ -n $line ]]; do
        number=$((number + 1))
        line=${line#$'\xef\xbb\xbf'} # an editor's byte order mark
        line=${line%"${line##*[![:space:]]}"} # blanks at the end, and the \r of CRLF
        [[ -n $line && ! $line =~ ^[[:space:]]*\# ]] || continue
        [[ $line =~ ^([A-Za-z]+)=([^[:space:]].*)?$ ]] \
            || stop "$file, line $number: write Key=Value, without blanks around the ="
        key=${BASH_REMATCH[1]} value=${BASH_REMATCH[2]}
        [[ ! $value =~ ^(\".*\"|\'.*\')$ && $value != $'\xe2\x80\x9c'* && $value != $'\xe2\x80\x98'* ]] \
            || stop "$file, line $number: no quotes around the value of $key"
        [[ ! $value =~ [[:space:]]\# ]] \
            || stop "$file, line $number: a comment has a line of its own; it would be part of $key"
        # Some come with what is copied from a page, and nobody sees them.
        [[ ! $value =~ [[:cntrl:]] && $value != *$'\xc2\xa0'* && $value != *$'\xe2\x80\x8b'* ]] \
            || stop "$file, line $number: the value of $key has a character that cannot be seen"
        [[ $key == DefaultFromEmail || ! $value =~ [[:space:]] ]] \
            || stop "$file, line $number: no blanks in the value of $key, neither after a comma"
        [[ $key == DefaultFromEmail || ! ,$value, =~ ,, || -z $value ]] \
            || stop "$file, line $number: the value of $key has a comma with nothing before or behind it"
        [[ -n ${known[$key]:-} ]] || stop "$file, line $number: no template has a parameter $key"
        [[ -z ${values[$key]:-} ]] || may_be "$value" "${values[$key]}" \
            || stop "$file, line $number: $key is ${values[$key]}, not '$value'"
        [[ -z ${seen[$key]:-} ]] || stop "$file, line $number: $key is there twice"
        seen[$key]=yes
        parameters+=("$line")
    done < "$file"
    prefix=$(parameter Prefix skincare)
    # The metrics of two environments in one account would add up in the alarms of both.
    [[ $prefix == skincare || -n $(parameter EnvironmentName '') ]] || parameters+=("EnvironmentName=$prefix")
    choose_region
}

choose_region() { # That of the load balancer, where none is named: a profile's would get a shop apart from it.
    local name region asked
    $dry_run && return
    for name in LoadBalancerArn TargetGroupArn HttpsListenerArn; do
        IFS=: read -r _ _ _ region _ <<< "$(parameter "$name" '')"
        [[ -n $region ]] || continue
        for asked in "${AWS_REGION:-$region}" "${AWS_DEFAULT_REGION:-$region}"; do
            [[ $asked == "$region" ]] || stop "$name is in $region, and this would go to $asked: export AWS_REGION=$region AWS_DEFAULT_REGION=$region"
        done
        export AWS_REGION=$region
    done
    # CLI 2 reads the first name, CLI 1 the second.
    region=${AWS_REGION:-${AWS_DEFAULT_REGION:-}}
    [[ -z $region ]] || export AWS_REGION=$region AWS_DEFAULT_REGION=${AWS_DEFAULT_REGION:-$region}
}

parameter() { # NAME DEFAULT: its value in the parameters file
    local line
    for line in "${parameters[@]}"; do
        if [[ ${line%%=*} == "$1" ]]; then
            echo "${line#*=}"
            return
        fi
    done
    echo "$2"
}

add_foundation() { # What foundation.yaml made, where the file does not name another.
    local key value answer
    answer=$(ask "$(awk '/^[A-Za-z]/ {inside = /^Outputs:/} inside && /^  [A-Za-z]+:/ {
            gsub(/[ :]/, ""); print $0 "\t<" $0 " of the foundation>"}' "$here/foundation.yaml")" \
        aws cloudformation describe-stacks --stack-name "$prefix-foundation" --output text \
        --query 'Stacks[0].Outputs[].[OutputKey, OutputValue]')
    while IFS=$'\t' read -r key value; do
        [[ -n $(parameter "$key" '') ]] || parameters+=("$key=$value")
    done <<< "$answer"
}

# -- Stacks ----------------------------------------------------------------------------------------

output() { # TEMPLATE NAME: an output of its stack
    ask "<$2 of $prefix-$1>" aws cloudformation describe-stacks --stack-name "$prefix-$1" \
        --query "Stacks[0].Outputs[?OutputKey=='$2'].OutputValue" --output text
}

stack_status() { # STACK: its status; NONE where there is no such stack
    local answer error
    if learn NONE aws cloudformation describe-stacks --stack-name "$1" \
        --query 'Stacks[0].StackStatus' --output text; then
        echo "$answer"
    elif [[ $error == *'does not exist'* ]]; then
        echo NONE
    else
        echo "$error" >&2
        return 1
    fi
}

# `deploy` leaves a failed change set where nothing changed, and a thousand of them end all deployments:
# https://github.com/aws/aws-cli/issues/4534
forget_change_sets() { # STACK: deletes those that failed; where that cannot be, there are years for it.
    local name
    for name in $(ask '<failed change set>' aws cloudformation list-change-sets --stack-name "$1" --output text \
        --query "Summaries[?Status=='FAILED'].[ChangeSetName]"); do
        run aws cloudformation delete-change-set --stack-name "$1" --change-set-name "$name" || return 0
    done
}

await_rest() { # STACK: waits until nothing changes it; sets `status`.
    status=$(stack_status "$1")
    while [[ $status == *_IN_PROGRESS && $status != REVIEW_IN_PROGRESS ]]; do
        echo "$1 is $status: waiting"
        sleep 60
        status=$(stack_status "$1")
    done
}

delete_stack() { # STACK
    run aws cloudformation delete-stack --stack-name "$1"
    run aws cloudformation wait stack-delete-complete --stack-name "$1"
}

make_way() { # STACK: waits until nothing changes it, and removes one whose creation failed.
    local status
    await_rest "$1"
    case $status in
        ROLLBACK_COMPLETE | ROLLBACK_FAILED | CREATE_FAILED | DELETE_FAILED)
            echo "$1 is $status: what its creation left is removed first"
            delete_stack "$1"
            # A queue's name is free a minute after the queue was deleted.
            [[ $1 != *-queues ]] || run sleep 61
            ;;
        UPDATE_ROLLBACK_FAILED)
            echo "$1 is $status. See the reason below, then:" >&2
            echo "  aws cloudformation continue-update-rollback --stack-name $1" >&2
            return 1
            ;;
        NONE) ;;
        *) forget_change_sets "$1" ;;
    esac
}

defaults() { # TEMPLATE: Key=Value of each parameter that has a default
    awk '/^[A-Za-z]/ {inside = /^Parameters:/} inside && /^  [A-Za-z]+:/ {gsub(/[ :]/, ""); name = $0}
        inside && /^    Default: / {sub(/^    Default: /, ""); gsub(/^"|"$/, ""); print name "=" $0}' "$here/$1.yaml"
}

# AWS gives a parameter that is not named the value that it had, so a line that was deleted, or a new
# default, would reach no stack that is there. The foundation alone keeps its values: another network
# or owner of the database would be another network or database.
stack() { # TEMPLATE [Key=Value…]: create or update the stack; parameters of other templates are ignored.
    local template=$1 role line
    local -a given=()
    shift
    failing="stack $prefix-$template"
    make_way "$prefix-$template"
    role=$(parameter CloudFormationRoleArn '')
    if [[ $template != foundation ]]; then
        while IFS= read -r line; do
            [[ $(parameter "${line%%=*}" absent) != absent ]] || given+=("$line")
        done < <(defaults "$template")
    fi
    run aws cloudformation deploy --stack-name "$prefix-$template" \
        --template-file "$here/$template.yaml" --capabilities CAPABILITY_IAM ${role:+--role-arn "$role"} \
        --no-fail-on-empty-changeset --parameter-overrides "${given[@]}" "${parameters[@]}" "$@"
}

no_stack() { # TEMPLATE: removes the stack of one that is no longer wanted.
    local status
    failing="stack $prefix-$1"
    await_rest "$prefix-$1"
    [[ $status == NONE ]] || delete_stack "$prefix-$1"
}

stacks() { # TEMPLATE…: those that do not need each other, side by side
    local template failed=
    local -A jobs=()
    for template in "$@"; do
        (set -e; stack "$template") 3>&1 2>&1 | sed "s/^/[$template] /" &
        jobs[$template]=$!
    done
    for template in "$@"; do
        wait "${jobs[$template]}" || failed=${failed:-$template}
    done
    [[ -z $failed ]] || { failing="stack $prefix-$failed"; return 1; }
}

# -- One-off tasks ---------------------------------------------------------------------------------

start_task() { # FAMILY SECURITY_GROUP [OVERRIDES]: sets `task`; says ECS's reason where it places none.
    local answer reason='' try
    task=''
    for try in 1 2 3; do
        # What was refused is told by the CLI, which has tried again already.
        answer=$(ask $'<task>\tNone' aws ecs run-task --cluster "$prefix" --launch-type FARGATE \
            --task-definition "$prefix-$1" --started-by "${started_by:0:128}" \
            --network-configuration "awsvpcConfiguration={subnets=[$(parameter PrivateSubnetIds '')],securityGroups=[$2],assignPublicIp=DISABLED}" \
            ${3:+--overrides "$3"} \
            --query '[tasks[0].taskArn, failures[0].reason, failures[0].detail]' --output text) || return 1
        read -r task reason <<< "$answer"
        [[ $task == None || -z $task ]] || return 0
        echo "ECS places no task ($reason), try $try of 3" >&2
        [[ $try == 3 ]] || sleep 30
    done
    return 1
}

await_task() { # TASK CONTAINER: waits as long as it runs; sets `exit_code` and `stopped`, ECS's reasons.
    local answer status seconds=0 pause=10 unanswered=0
    $dry_run && { run aws ecs describe-tasks --cluster "$prefix" --tasks "$1"; exit_code=0; return; }
    while true; do
        if answer=$(aws ecs describe-tasks --cluster "$prefix" --tasks "$1" --output text --query \
            "tasks[0].[lastStatus, containers[?name=='$2']|[0].exitCode, stopCode, stoppedReason, containers[?name=='$2']|[0].reason]") \
            && [[ $answer != None && -n $answer ]]; then # which is ECS's word for a task that it does not know (yet)
            unanswered=0
            IFS=$'\t' read -r status exit_code stopped <<< "$answer"
            [[ $status != STOPPED ]] || return 0
        elif ((++unanswered == 10)); then
            echo "AWS does not say how $1 goes; it still runs. Deploy again: that waits for it." >&2
            return 1
        fi
        ((seconds % 60)) || echo "${1##*/} is ${status:-unknown} after $((seconds / 60)) minutes"
        sleep $pause
        seconds=$((seconds + pause))
        ((seconds < 60)) || pause=30
    done
}

task_log() { # FAMILY CONTAINER TASK LINES: the last lines that it wrote, which come seconds after its end.
    local written='' try
    for try in 1 2 3; do
        [[ $try == 1 ]] || sleep 5
        written=$(aws logs get-log-events --log-group-name "/$prefix/$1" --limit "$4" --output text \
            --log-stream-name "$1/$2/${3##*/}" --query 'events[].[message]' 2> /dev/null) || true
        [[ -z $written ]] || break
    done
    printf '%s\n' "${written:-(it wrote no log line)}"
}
