"""The deployment on ECS: templates, deploy.sh, and the simulation of the scaling."""
