"""What the account has before the first deployment, made up."""

LOAD_BALANCER = {
    "LoadBalancerArn": (
        "arn:aws:elasticloadbalancing:ap-southeast-3:123456789012:loadbalancer/app/shop/0123"
    ),
    "TargetGroupArn": (
        "arn:aws:elasticloadbalancing:ap-southeast-3:123456789012:targetgroup/skincare-api/4567"
    ),
}
