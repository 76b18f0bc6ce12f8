#!/usr/bin/env bash
# Builds the image, pushes it, migrates the database and rolls both services; see ecs/README.md.
set -euo pipefail

usage() {
    cat <<'END'
Usage: ecs/deploy.sh [options] PARAMETERS

PARAMETERS is a file of Key=Value lines (ecs/parameters.example lists them). It may run again after
any failure, and at the same commit: what is done already is not done twice.

  --image IMAGE:TAG  deploy this image instead of building one; the way back to an earlier release
  --url URL          where the smoke test asks (default: https:// and the first of AllowedHosts)
  --dry-run          print every call of AWS and Docker, make none
END
}

here=$(CDPATH='' cd -- "$(dirname "${BASH_SOURCE[0]}")" && pwd)
program=deploy dry_run=false image='' url='' failing='the start' previous='' task=''
# shellcheck source=ecs/aws.sh
source "$here/aws.sh"
# shellcheck source=ecs/checks.sh
source "$here/checks.sh"
# shellcheck source=ecs/release.sh
source "$here/release.sh"
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
parameters_file=$1
read_parameters "$parameters_file"
hosts=$(parameter AllowedHosts '')
[[ -n $hosts ]] || stop "$parameters_file lacks AllowedHosts"
commas=${hosts//[!,]/}
((${#commas} < 3)) || stop "AllowedHosts names $((${#commas} + 1)) hosts: a rule of the load balancer takes three beside the two paths of the admin"
foundation=$(parameter Foundation false)
[[ $foundation == true || -n $(parameter PrivateSubnetIds '') ]] \
    || stop "$parameters_file lacks PrivateSubnetIds (or Foundation=true, which makes them)"
[[ $(parameter CloudFormationRoleArn '') != *-CloudFormationRole-* || -n $(parameter PermissionsBoundaryArn '') ]] \
    || stop "$parameters_file lacks PermissionsBoundaryArn: deployer.yaml's role makes no role without it, and the stack has it as an output"
url=${url:-https://${hosts%%,*}}
architecture=$(parameter CpuArchitecture X86_64)
if [[ $image == *.dkr.ecr.*/"$prefix":* ]]; then # whose tags say what they were built for, see below
    built_for=$([[ $image == *-arm64 ]] && echo ARM64 || echo X86_64)
    [[ $built_for == "$architecture" ]] \
        || stop "$image is built for $built_for: with it goes CpuArchitecture=$built_for"
fi

if ! $dry_run; then
    for program_needed in aws curl $([[ -n $image ]] || echo docker git); do
        command -v "$program_needed" > /dev/null || stop "$program_needed is not installed"
    done
    if [[ -z $image ]]; then
        uncommitted=$(git -C "$here" status --porcelain) \
            || stop "the image is named after the commit, and this is no clone: use one, or give --image"
        [[ -z $uncommitted ]] || stop "commit first, the image is named after the commit"
    fi
fi

deployed_image() { # TEMPLATE: what that service runs; empty at the first deployment.
    aws cloudformation describe-stacks --stack-name "$prefix-$1" --output text \
        --query "Stacks[0].Parameters[?ParameterKey=='Image'].ParameterValue" 2>/dev/null || true
}

explain_failure() { # The reasons that AWS knows, and the way back.
    set +e
    trap - EXIT
    $dry_run && return
    {
        printf '\ndeploy: FAILED at %s\n' "$failing"
        if [[ $failing == stack\ * ]]; then
            echo "-- ${failing#stack } is $(stack_status "${failing#stack }" 2> /dev/null). What failed in it:"
            aws cloudformation describe-stack-events --stack-name "${failing#stack }" --output text --query \
                "StackEvents[?contains(ResourceStatus, 'FAILED')].[Timestamp,LogicalResourceId,ResourceStatusReason]" 2>/dev/null | head -20
        fi
        for service in worker api; do
            [[ $failing == *-"$service" || $failing == 'the services' || $failing == the\ smoke* ]] || continue
            echo "-- Last events of $prefix-$service:"
            aws ecs describe-services --cluster "$prefix" --services "$prefix-$service" \
                --query 'services[0].events[:5].[createdAt,message]' --output text 2>/dev/null
            stopped=$(aws ecs list-tasks --cluster "$prefix" --family "$prefix-$service" \
                --desired-status STOPPED --max-items 1 --query 'taskArns[0]' --output text 2>/dev/null | head -1)
            if [[ $stopped == arn:* ]]; then
                echo "-- Its last stopped task, and the last lines of its log:"
                aws ecs describe-tasks --cluster "$prefix" --tasks "$stopped" --output text --query \
                    'tasks[].[stopCode,stoppedReason,containers[].[name,exitCode,reason][]]' 2>/dev/null
                task_log "$service" "$service" "$stopped" 20
            fi
        done
        echo "-- The way back:"
        if [[ $previous == "$image" ]]; then
            echo "   It ran this image before: put back what has changed in $parameters_file, or a secret's last"
            echo "   value, and deploy again. Or an older image: $0 --image IMAGE:TAG $parameters_file"
        elif [[ -n $previous && $previous != None ]]; then
            echo "   $0 --image $previous $parameters_file"
            echo "   (services that failed were rolled back to it by ECS already; a migration is not undone)"
        else
            echo "   Nothing ran before: correct the cause and deploy again."
        fi
    } >&2
}
trap '[[ $? -eq 0 ]] || explain_failure' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

step "Account"
failing='the account'
check_account
$dry_run || previous=$(deployed_image api)

if [[ $foundation == true ]]; then
    step "Foundation"
    # What is protected against deletion could not be rolled back, were its creation to fail half way.
    failing="stack $prefix-foundation"
    make_way "$prefix-foundation"
    status=$(stack_status "$prefix-foundation")
    [[ $status != NONE && $status != REVIEW_IN_PROGRESS ]] || stack foundation DeletionProtection=false
    stack foundation "DeletionProtection=$(parameter DeletionProtection true)"
    add_foundation
fi

step "Registry, queues, secrets, network, cluster"
stacks registry queues secrets network cluster alarms-topic
stacks roles alarms-queue alarms-events alarms-services alarms-tasks

step "What the tasks need"
check_secrets
check_load_balancer
check_database
if [[ -n $database_instance ]]; then
    stack alarms-database "DatabaseInstance=$database_instance"
else
    no_stack alarms-database
fi
stack routing "HttpsListenerArn=$https_listener"
if [[ $(parameter Waf true) == true ]]; then stack waf; else no_stack waf; fi

step "Image"
repository=$(output registry RepositoryUri)
if [[ -z $image ]]; then
    # An image of the other architecture is another image, so it has another tag.
    tag=$(git -C "$here" rev-parse --short=12 HEAD)$([[ $architecture == X86_64 ]] || echo -arm64)
    image=$repository:$tag
    failing='the image'
    if is_pushed "$tag" ImageNotFoundException; then
        echo "$image is in the registry already"
    else
        build_and_push
    fi
elif [[ ${image%:*} == "$repository" ]]; then
    failing="the image $image"
    is_pushed "${image##*:}" sha256: || stop "the registry has no $image"
fi
release=${image##*:}
started_by=deploy-${release//[^A-Za-z0-9_-]/-}
what=("Image=$image" "Release=$release" "SecretsVersion=$secrets_version")

step "Migration"
stack migration "${what[@]}"
migrate

# Workers first: the API of the new release may publish what only they understand.
step "Services"
for template in worker api; do
    stack "$template" "${what[@]}"
done
stacks scaling dashboard schedules
await_services
for template in worker api; do
    $dry_run && break
    running=$(deployed_image "$template")
    [[ -z $running || $running == "$image" ]] || stop "$prefix-$template runs $running: another deployment went on at the same time. Deploy again when it has ended"
done
stacks alarms-presence # only now: before, nobody is there

step "Smoke test"
for path in /healthz /readyz; do
    failing="the smoke test of $url$path"
    run curl --fail --silent --show-error --retry 5 --retry-connrefused --max-time 5 "$url$path" || {
        [[ $? -ne 6 ]] || echo "deploy: everything runs, but ${url#https://} has no address yet: its record in DNS leads to the load balancer (ecs/README.md)" >&2
        exit 1
    }
done
$dry_run || printf '\ndeploy: %s runs %s\n' "$prefix" "$image"
