# shellcheck shell=bash disable=SC2034,SC2154
# The three things of a release that deploy.sh waits for: the image, the migration, the services.
# Sourced by it, after aws.sh.

is_pushed() { # TAG ANSWER_OF_A_DRY_RUN: whether the registry has it. Stops where that cannot be known.
    local answer error
    if learn "$2" aws ecr describe-images --repository-name "$prefix" \
        --image-ids "imageTag=$1" --query 'imageDetails[0].imageDigest' --output text; then
        [[ $answer == sha256:* ]]
        return
    fi
    [[ $error == *ImageNotFoundException* ]] || stop "$error"
    return 1
}

build_and_push() { # A tag never changes its image: whoever pushes second uses what is there.
    local platform=linux/amd64
    [[ $architecture == X86_64 ]] || platform=linux/arm64
    # Its provenance would be an image of its own in the registry, which keeps fifty.
    export BUILDX_NO_DEFAULT_ATTESTATIONS=1
    run docker build --platform "$platform" --tag "$image" --file "$here/../docker/Dockerfile" \
        --build-arg "REVISION=$(git -C "$here" rev-parse HEAD)" \
        --build-arg "CREATED=$(git -C "$here" log -1 --format=%cI)" "$here/.."
    ask '<password>' aws ecr get-login-password \
        | { run docker login --username AWS --password-stdin "${repository%%/*}" && cat > /dev/null; }
    run docker push "$image" || is_pushed "$tag" ImageNotFoundException || stop "$image is not pushed"
}

migrate() { # Runs the migration of the new image to its end; one that still runs is waited for first.
    local running
    failing='the migration'
    running=$(ask None aws ecs list-tasks --cluster "$prefix" --family "$prefix-migration" \
        --desired-status RUNNING --query 'taskArns[0]' --output text)
    if [[ $running == arn:* ]]; then
        echo "a migration still runs (${running##*/}): waiting for its end"
        await_task "$running" migration
    fi
    start_task migration "$(output network WorkerSecurityGroupId)" \
        || stop "ECS started no migration; the services still run what they ran"
    await_task "$task" migration
    [[ $exit_code != 0 ]] || return 0
    {
        echo "deploy: the migration ended with exit code $exit_code; the services still run what they ran."
        echo "-- ECS says: $stopped"
        echo "-- The last lines of its log:"
        task_log migration migration "$task" 30
    } >&2
    return 1
}

await_services() { # Waits until both services run the new release and nothing else, half an hour at most.
    local answer name state reason running desired steady waited=0 unanswered=0
    local -a idle=()
    failing='the services'
    $dry_run || echo "waiting until both services are steady"
    while true; do
        steady=true idle=()
        # One that somebody deleted is no service, also where its stack says that it has not changed.
        if answer=$(ask $'<service>\tCOMPLETED\t1\t1\t' aws ecs describe-services --cluster "$prefix" \
            --services "$prefix-worker" "$prefix-api" --output text --query \
            "[services[].[serviceName, status=='ACTIVE' && deployments[?status=='PRIMARY']|[0].rolloutState || status, runningCount, desiredCount, deployments[?status=='PRIMARY']|[0].rolloutStateReason], failures[].[arn, reason]][]"); then
            unanswered=0
        elif ((++unanswered == 10)); then
            stop "AWS does not say how the services go"
        fi
        while IFS=$'\t' read -r name state running desired reason; do
            name=${name##*/}
            case $state in
                FAILED) stop "$name failed: $reason" ;;
                MISSING | INACTIVE | DRAINING)
                    echo "$program: $name is $state, somebody deleted it. To have it made again:" >&2
                    echo "  for stack in $prefix-scaling $name; do aws cloudformation delete-stack --stack-name \$stack; done" >&2
                    stop "then deploy again"
                    ;;
            esac
            [[ $state == COMPLETED && $running == "$desired" ]] || steady=false
            [[ $desired != 0 ]] || idle+=("$name")
        done <<< "$answer"
        ! $steady || break
        ((waited < 1800)) || stop "the services are not steady after half an hour: $answer"
        sleep 15
        waited=$((waited + 15))
    done
    for name in "${idle[@]}"; do
        echo "deploy: somebody has stopped $name, and it stays so. Its tasks start with:" >&2
        echo "  aws ecs update-service --cluster $prefix --service $name --desired-count 1" >&2
    done
}
