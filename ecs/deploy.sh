#!/usr/bin/env bash
# Builds the image, pushes it, migrates the database and rolls both services; see ecs/README.md.
set -euo pipefail

usage() {
    cat <<'END'
Usage: ecs/deploy.sh [options] PARAMETERS

PARAMETERS is a file of Key=Value lines (ecs/parameters.example lists them).

  --image IMAGE:TAG  deploy this image instead of building one; the way back to an earlier release
  --url URL          where the smoke test asks (default: https:// and the first of AllowedHosts)
  --dry-run          print every call of AWS and Docker, make none
END
}

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
dry_run=false
image=
url=
while [[ $# -gt 0 ]]; do
    case $1 in
        --image) image=${2:?--image needs IMAGE:TAG}; shift 2 ;;
        --url) url=${2:?--url needs a URL}; shift 2 ;;
        --dry-run) dry_run=true; shift ;;
        --help) usage; exit 0 ;;
        -*) usage >&2; exit 2 ;;
        *) break ;;
    esac
done
[[ $# -eq 1 ]] || { usage >&2; exit 2; }
[[ -r $1 ]] || { echo "deploy: no parameters file $1" >&2; exit 2; }
parameters_file=$1
mapfile -t parameters < <(grep -E '^[A-Za-z]+=' "$parameters_file")

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

prefix=$(parameter Prefix skincare)
hosts=$(parameter AllowedHosts '')
subnets=$(parameter PrivateSubnetIds '')
[[ -n $hosts && -n $subnets ]] || { echo "deploy: $parameters_file lacks AllowedHosts or PrivateSubnetIds" >&2; exit 2; }
url=${url:-https://${hosts%%,*}}

if [[ -z $image ]] && ! $dry_run && [[ -n $(git -C "$here" status --porcelain) ]]; then
    echo "deploy: commit first, the image is named after the commit" >&2
    exit 1
fi

step() { printf '\n== %s\n' "$*"; }

run() { # A call that changes something, or waits: printed, and made unless --dry-run.
    printf '+'
    printf ' %q' "$@"
    printf '\n'
    $dry_run || "$@"
}

ask() { # PLACEHOLDER COMMAND…: prints what the command answers, or the placeholder when --dry-run.
    local placeholder=$1
    shift
    { printf '+'; printf ' %q' "$@"; printf '\n'; } >&2
    if $dry_run; then
        echo "$placeholder"
    else
        "$@"
    fi
}

stack() { # TEMPLATE [Key=Value…]: create or update the stack; parameters of other templates are ignored.
    local template=$1
    shift
    failing="stack $prefix-$template"
    run aws cloudformation deploy --stack-name "$prefix-$template" \
        --template-file "$here/$template.yaml" --capabilities CAPABILITY_IAM \
        --no-fail-on-empty-changeset --parameter-overrides "${parameters[@]}" "$@"
}

stacks() { # TEMPLATE…: those that do not need each other, side by side
    local template
    local -A jobs=()
    for template in "$@"; do
        stack "$template" 2>&1 | sed "s/^/[$template] /" &
        jobs[$template]=$!
    done
    for template in "$@"; do
        failing="stack $prefix-$template"
        wait "${jobs[$template]}"
    done
}

output() { # TEMPLATE NAME: an output of its stack
    ask "<$2 of $prefix-$1>" aws cloudformation describe-stacks --stack-name "$prefix-$1" \
        --query "Stacks[0].Outputs[?OutputKey=='$2'].OutputValue" --output text
}

deployed_image() { # What the API runs now; empty at the first deployment.
    aws cloudformation describe-stacks --stack-name "$prefix-api" --output text \
        --query "Stacks[0].Parameters[?ParameterKey=='Image'].ParameterValue" 2>/dev/null || true
}

explain_failure() { # The reasons that AWS knows, and the way back.
    set +e
    $dry_run && return
    printf '\ndeploy: FAILED at %s\n' "$failing" >&2
    {
        if [[ $failing == stack\ * ]]; then
            echo "-- What failed in it:"
            aws cloudformation describe-stack-events --stack-name "${failing#stack }" --output text --query \
                "StackEvents[?contains(ResourceStatus, 'FAILED')].[Timestamp,LogicalResourceId,ResourceStatusReason]" 2>/dev/null | head -20
        fi
        for service in api worker; do
            echo "-- Last events of $prefix-$service:"
            aws ecs describe-services --cluster "$prefix" --services "$prefix-$service" \
                --query 'services[0].events[:5].[createdAt,message]' --output text 2>/dev/null
            stopped=$(aws ecs list-tasks --cluster "$prefix" --family "$prefix-$service" \
                --desired-status STOPPED --max-items 3 --query 'taskArns' --output text 2>/dev/null | head -1)
            if [[ $stopped == arn:* ]]; then
                # shellcheck disable=SC2086  # several ARNs, separated by blanks
                aws ecs describe-tasks --cluster "$prefix" --tasks $stopped --output text --query \
                    'tasks[].[stoppedReason,containers[0].reason,containers[0].exitCode]' 2>/dev/null
            fi
        done
        echo "-- The way back:"
        if [[ -n $previous && $previous != None ]]; then
            echo "   $0 --image $previous $parameters_file"
            echo "   (services that failed were rolled back to it by ECS already; a migration is not undone)"
        else
            echo "   Nothing ran before: correct the cause and deploy again."
        fi
        if [[ $failing == stack\ * ]]; then
            echo "   A stack that failed when it was new (ROLLBACK_COMPLETE) has to go first:"
            echo "   aws cloudformation delete-stack --stack-name ${failing#stack }"
        fi
    } >&2
}

failing='the start'
previous=
trap '[[ $? -eq 0 ]] || explain_failure' EXIT

step "Account"
run aws sts get-caller-identity --output text
$dry_run || previous=$(deployed_image)

step "Registry and image"
stack registry
if [[ -z $image ]]; then
    repository=$(output registry RepositoryUri)
    image=$repository:$(git -C "$here" rev-parse --short=12 HEAD)
    failing='docker build'
    platform=linux/amd64
    [[ $(parameter CpuArchitecture X86_64) == X86_64 ]] || platform=linux/arm64
    run docker build --platform "$platform" --tag "$image" --file "$here/../docker/Dockerfile" \
        --build-arg "REVISION=$(git -C "$here" rev-parse HEAD)" \
        --build-arg "CREATED=$(date -u +%Y-%m-%dT%H:%M:%SZ)" "$here/.."
    failing='docker push'
    ask '<password>' aws ecr get-login-password \
        | { run docker login --username AWS --password-stdin "${repository%%/*}" && cat > /dev/null; }
    run docker push "$image"
fi
release=${image##*:}

step "Queues, secrets, network, cluster, alarms"
stacks queues secrets network cluster alarms-topic
stacks roles alarms-queue alarms-events alarms-services

step "Secrets have values"
providers=$(parameter PaymentProviders midtrans,xendit)
secrets=(DATABASE_URL EMAIL_URL)
[[ $providers != *midtrans* ]] || secrets+=(MIDTRANS_SERVER_KEY)
[[ $providers != *xendit* ]] || secrets+=(XENDIT_CALLBACK_TOKEN)
for secret in "${secrets[@]}"; do
    failing="secret $prefix/$secret"
    version=$(ask '<version>' aws secretsmanager list-secret-version-ids --secret-id "$prefix/$secret" \
        --query 'Versions[0].VersionId' --output text)
    if [[ $version == None ]]; then
        echo "deploy: $prefix/$secret has no value. Put it, then deploy again:" >&2
        echo "  aws secretsmanager put-secret-value --secret-id $prefix/$secret --secret-string 'VALUE'" >&2
        exit 1
    fi
done

step "Migration"
stack migration "Image=$image" "Release=$release"
failing='the migration'
task=$(ask '<task>' aws ecs run-task --cluster "$prefix" --launch-type FARGATE \
    --task-definition "$prefix-migration" --started-by "deploy-$release" \
    --network-configuration "awsvpcConfiguration={subnets=[$subnets],securityGroups=[$(output network WorkerSecurityGroupId)],assignPublicIp=DISABLED}" \
    --query 'tasks[0].taskArn' --output text)
run aws ecs wait tasks-stopped --cluster "$prefix" --tasks "$task"
exit_code=$(ask 0 aws ecs describe-tasks --cluster "$prefix" --tasks "$task" \
    --query 'tasks[0].containers[0].exitCode' --output text)
if [[ $exit_code != 0 ]]; then
    echo "deploy: the migration ended with $exit_code; the services still run what they ran." >&2
    aws logs get-log-events --log-group-name "/$prefix/migration" --limit 30 --output text \
        --log-stream-name "migration/migration/${task##*/}" --query 'events[].[message]' >&2 || true
    exit 1
fi

# Workers first: the API of the new release may publish what only they understand.
step "Services"
for template in worker api; do
    stack "$template" "Image=$image" "Release=$release"
done
stacks scaling dashboard
failing='the services'
run aws ecs wait services-stable --cluster "$prefix" --services "$prefix-worker" "$prefix-api"

step "Smoke test"
for path in /healthz /readyz; do
    failing="the smoke test of $url$path"
    run curl --fail --silent --show-error --retry 5 --retry-connrefused --max-time 5 "$url$path"
done
$dry_run || printf '\ndeploy: %s runs %s\n' "$prefix" "$image"
