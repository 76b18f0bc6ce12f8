# shellcheck shell=bash disable=SC2034,SC2154
# What deploy.sh looks at before it builds anything: each check stops it with the command that helps.
# Sourced by it, after aws.sh.

check_account() { # The account of the parameters, the role that ECS works with, and enough of Fargate.
    local answer error
    check_identity
    # ECS cannot make its first cluster without it, and makes it too late by itself.
    if learn '<role>' aws iam get-role --role-name AWSServiceRoleForECS --query Role.Arn --output text; then
        echo "$answer"
    elif [[ $error == *NoSuchEntity* ]]; then
        run aws iam create-service-linked-role --aws-service-name ecs.amazonaws.com
    else
        echo "$error" >&2
        return 1
    fi
    check_quota
}

check_identity() { # Another profile would get half a shop before anything there is missed.
    local answer error account who name owner
    if ! learn $'<account>\t<who>' aws sts get-caller-identity --query '[Account, Arn]' --output text; then
        echo "$error" >&2
        [[ $error != *InvalidClientTokenId* ]] \
            || echo "deploy: right credentials look so in a region that is not enabled: aws account enable-region --region-name ${AWS_REGION:-REGION}, and minutes of waiting" >&2
        return 1
    fi
    read -r account who <<< "$answer"
    echo "$account $who"
    $dry_run && return
    for name in LoadBalancerArn TargetGroupArn HttpsListenerArn; do
        IFS=: read -r _ _ _ _ owner _ <<< "$(parameter "$name" '')"
        [[ -z $owner || $owner == "$account" ]] \
            || stop "$name is of account $owner, these credentials are of $account"
    done
}

check_quota() { # Warns where the most tasks that may run, twice in a deployment, are more than allowed.
    local allowed needed
    allowed=$(ask '<vCPUs>' aws service-quotas get-service-quota --service-code fargate \
        --quota-code L-3032A538 --query Quota.Value --output text) || allowed=
    needed=$((2 * ($(parameter WorkerMaxTasks 10) * $(parameter WorkerCpu 512) \
        + $(parameter ApiMaxTasks 10) * $(parameter ApiCpu 256)) / 1024 + 1))
    if [[ $allowed =~ ^[0-9]+ ]] && ((needed > ${allowed%.*})); then
        echo "Fargate allows this account ${allowed%.*} vCPUs; all tasks, while they are rolled, need $needed. Ask for them:" >&2
        echo "  aws service-quotas request-service-quota-increase --service-code fargate --quota-code L-3032A538 --desired-value $needed" >&2
    fi
}

# A task reads its secrets when it starts, so a new value has to make new tasks: they carry a label with this.
check_secrets() { # Each secret that a task asks for has a value, and stays. Sets `secrets_version`.
    local answer providers accepted secret arn deleted current replaced changed
    local secrets=(SECRET_KEY EMAIL_URL) missing=() leaving=() changes=()
    failing='the secrets'
    if [[ -z $(parameter DatabaseHost '') ]]; then
        secrets+=(DATABASE_URL)
    elif [[ -z $(parameter DatabaseSecretArn '') ]]; then
        stop "DatabaseHost needs DatabaseSecretArn, the secret whose key \`password\` is the owner's"
    else
        secrets+=(SERVICES_PASSWORD)
    fi
    providers=$(parameter PaymentProviders midtrans,xendit)
    accepted=$(parameter AcceptPrevious '')
    [[ $providers,$accepted != *midtrans* ]] || secrets+=(MIDTRANS_SERVER_KEY)
    [[ $providers,$accepted != *xendit* ]] || secrets+=(XENDIT_CALLBACK_TOKEN XENDIT_SECRET_KEY)
    [[ $(parameter BuyerTokens false) != true ]] || secrets+=(BUYER_TOKEN_SECRETS)
    secrets=("${secrets[@]/#/$prefix/}")
    for arn in "$(parameter DatabaseSecretArn '')" "$(parameter ServicesDatabaseSecretArn '')"; do
        # Of others' secrets the deployer may know nothing.
        [[ $arn != *":secret:$prefix/"* ]] || secrets+=("$arn")
    done
    for secret in "${secrets[@]}"; do
        # The date decides over new tasks, and the CLI writes it in the zone of its machine.
        answer=$(TZ=UTC ask $'None\tTrue\tTrue\tNone' aws secretsmanager describe-secret --secret-id "$secret" --output text \
            --query "[DeletedDate, contains(values(VersionIdsToStages || \`{}\`)[], 'AWSCURRENT'), contains(values(VersionIdsToStages || \`{}\`)[], 'AWSPREVIOUS'), LastChangedDate]")
        read -r deleted current replaced changed <<< "$answer"
        # A task that asks for a version that there is not does not start.
        case ,$accepted,$secret,$replaced in
            *,midtrans,*/MIDTRANS_SERVER_KEY,False | *,xendit,*/XENDIT_CALLBACK_TOKEN,False)
                stop "AcceptPrevious=$accepted: $secret has had one value only. Put the new one first, or take the line out" ;;
        esac
        [[ $current == True ]] || missing+=("$secret")
        [[ $deleted == None ]] || leaving+=("$secret")
        changes+=("$secret=$changed")
    done
    secrets_version=$(cksum <<< "${changes[*]}")
    secrets_version=${secrets_version%% *}
    for secret in "${missing[@]}"; do
        echo "deploy: $secret has no value. Put it, then deploy again:" >&2
        echo "  aws secretsmanager put-secret-value --secret-id $secret --secret-string 'VALUE'" >&2
    done
    for secret in "${leaving[@]}"; do
        echo "deploy: $secret is scheduled for deletion, so no task gets it. Keep it, then deploy again:" >&2
        echo "  aws secretsmanager restore-secret --secret-id $secret" >&2
    done
    [[ ${#missing[@]} -eq 0 && ${#leaving[@]} -eq 0 ]] || exit 1
}

check_load_balancer() { # A certificate for each host, a right target group. Sets `https_listener`.
    local balancer group answer listener arn status names host type path
    local -a certified=()
    balancer=$(parameter LoadBalancerArn '')
    group=$(parameter TargetGroupArn '')
    failing='the load balancer'
    answer=$(ask $'ip\t/healthz' aws elbv2 describe-target-groups --target-group-arns "$group" --output text \
        --query 'TargetGroups[0].[TargetType, HealthCheckPath]')
    read -r type path <<< "$answer"
    [[ $type == ip ]] || stop "the target group's type is $type: Fargate needs one of type ip (aws elbv2 create-target-group --target-type ip …)"
    [[ $path == /healthz ]] || stop "the target group checks $path. /healthz alone is answered by each task that is well, also where the database is slow: aws elbv2 modify-target-group --target-group-arn $group --health-check-path /healthz"
    failing='the certificate'
    answer=$(ask '<listener>' aws elbv2 describe-listeners --load-balancer-arn "$balancer" --output text \
        --query "Listeners[?Protocol=='HTTPS'].[ListenerArn]")
    [[ -n $answer ]] || stop "the load balancer has no HTTPS listener: aws elbv2 create-listener --protocol HTTPS --port 443 --certificates CertificateArn=… (see ecs/README.md)"
    https_listener=$(parameter HttpsListenerArn "${answer%%$'\n'*}")
    for listener in $answer; do
        for arn in $(ask '<certificate>' aws elbv2 describe-listener-certificates --listener-arn "$listener" \
            --query 'Certificates[].[CertificateArn]' --output text); do
            # A certificate that IAM keeps cannot be looked at so.
            [[ $arn != *:server-certificate/* ]] || return 0
            answer=$(ask $'ISSUED\t*' aws acm describe-certificate --certificate-arn "$arn" --output text \
                --query "Certificate.[Status, join(' ', SubjectAlternativeNames)]")
            read -r status names <<< "$answer"
            [[ $status != ISSUED ]] || certified+=("$names")
        done
    done
    $dry_run && return
    for host in ${hosts//,/ } $(parameter AdminHost ''); do
        [[ " ${certified[*]-} " == *" $host "* || " ${certified[*]-} " == *" *.${host#*.} "* ]] \
            || stop "no issued certificate of the HTTPS listener is for $host: see aws acm list-certificates, and validate it by DNS"
    done
}

# Sets `database_instance`, which is empty where there is none.
check_database() { # The RDS instance of the database's security group, if there is one, is available.
    local group answer name status source
    database_instance=''
    group=$(parameter DatabaseSecurityGroupId '')
    failing='the database'
    answer=$(ask $'<instance>\tavailable\tNone' aws rds describe-db-instances --output text --query \
        "DBInstances[?VpcSecurityGroups[?VpcSecurityGroupId=='$group']].[DBInstanceIdentifier, DBInstanceStatus, ReadReplicaSourceDBInstanceIdentifier]")
    if [[ -z $answer ]]; then
        echo "No RDS instance has the security group $group: the database is not looked at"
        return
    fi
    while read -r name status source; do
        [[ $source != None ]] || database_instance=${database_instance:-$name}
        case $status in
            storage-full) stop "the database $name is storage-full: aws rds modify-db-instance --db-instance-identifier $name --apply-immediately --allocated-storage GIB" ;;
            available | backing-up | configuring-* | maintenance | modifying | storage-* | upgrading) ;;
            *) stop "the database $name is $status: aws rds describe-db-instances --db-instance-identifier $name" ;;
        esac
    done <<< "$answer"
}
