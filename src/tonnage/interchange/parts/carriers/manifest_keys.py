"""Keys of manifests that change neither memory nor time, and those that say how many pods there are."""

from collections.abc import Iterable

from tonnage.interchange.parts.carriers.workloads import OPERATED, Workload
from tonnage.interchange.parts.launching.accelerators import COUNTED, MIG
from tonnage.interchange.parts.launching.counting import NO_HOST_LIMIT
from tonnage.interchange.parts.words import names
from tonnage.interchange.reading import Reading

# Kubernetes 1.36, staging/src/k8s.io/api/core/v1/types.go: PodSpec
POD = frozenset(
    names("""
    volumes initContainers ephemeralContainers restartPolicy terminationGracePeriodSeconds activeDeadlineSeconds
    dnsPolicy nodeSelector serviceAccountName serviceAccount automountServiceAccountToken nodeName hostNetwork
    hostPID hostIPC shareProcessNamespace securityContext imagePullSecrets hostname subdomain affinity
    schedulerName tolerations hostAliases priorityClassName priority dnsConfig readinessGates runtimeClassName
    enableServiceLinks preemptionPolicy overhead topologySpreadConstraints setHostnameAsFQDN os hostUsers
    schedulingGates hostnameOverride workloadRef schedulingGroup resources
""")
)
# The same file: Container
CONTAINER = frozenset(
    names("""
    name image command args workingDir ports envFrom env resizePolicy restartPolicy restartPolicyRules
    volumeMounts volumeDevices livenessProbe readinessProbe startupProbe lifecycle terminationMessagePath
    terminationMessagePolicy imagePullPolicy securityContext stdin stdinOnce tty
""")
)
# Specs of what runs pods: of Kubernetes' own kinds, Kubeflow's, JobSet's, LeaderWorkerSet's, KubeRay's and Volcano's
OBJECT = frozenset(
    names("""
    selector strategy minReadySeconds revisionHistoryLimit paused progressDeadlineSeconds serviceName
    podManagementPolicy updateStrategy volumeClaimTemplates persistentVolumeClaimRetentionPolicy ordinals
    backoffLimit backoffLimitPerIndex maxFailedIndexes podFailurePolicy successPolicy manualSelector
    ttlSecondsAfterFinished completionMode suspend podReplacementPolicy managedBy activeDeadlineSeconds schedule
    timeZone concurrencyPolicy startingDeadlineSeconds successfulJobsHistoryLimit failedJobsHistoryLimit
    runPolicy elasticPolicy restartPolicy cleanPodPolicy sshAuthMountPath mpiImplementation
    launcherCreationPolicy runLauncherAsWorker network failurePolicy startupPolicy coordinator rolloutStrategy
    networkConfig subGroupPolicy groupName rayVersion shutdownAfterJobFinishes entrypoint
    runtimeEnvYAML submissionMode submitterPodTemplate submitterConfig jobId metadata headServiceAnnotations
    enableInTreeAutoscaling autoscalerOptions rayStartParams serviceType headService enableIngress
    deletionStrategy serviceUnhealthySecondThreshold deploymentUnhealthySecondThreshold
    excludeHeadPodFromServeSvc upgradeStrategy serveService minAvailable queue plugins policies maxRetry name
    runtimeRef initializer podTemplateOverrides podSpecOverrides labels annotations minMember resourcePolicy
    dependsOn minReplicas maxReplicas scaleStrategy idleTimeoutSeconds gcsFaultToleranceOptions suspended
    workerSpec priorityClassName schedulerName networkPolicy entrypointNumCpus entrypointNumGpus
    entrypointResources
""")
)
# Sections around pods, and those whose entries have names.
SECTIONS = (
    "spec", "template", "jobTemplate", "leaderWorkerTemplate", "leaderTemplate", "workerTemplate", "headGroupSpec",
    "rayClusterSpec", "rayClusterConfig", "trainer",
)  # fmt: skip
NAMED = (*OPERATED.values(), "replicatedJobs", "tasks", "workerGroupSpecs")
COUNTS = (
    "replicas", "parallelism", "completions", "size", "numNodes", "numOfHosts", "nprocPerNode", "numProcPerNode",
    "slotsPerWorker",
)  # fmt: skip


def classify(r: Reading, work: Iterable[Workload]) -> None:
    """Say of every key of the objects whether it changes memory or time."""
    for one in work:
        for key in list(r.values):
            if key.startswith(one.place):
                _classify(r, one, key)


def _classify(r: Reading, work: Workload, key: str) -> None:
    tail = key[len(work.place) :]
    first, _, rest = tail.partition(".")
    pods = next((pods for pods in work.pods if key.startswith(f"{pods.place}.")), None)
    parts = (key[len(pods.place) + 1 :] if pods is not None else "").split(".")
    if first in ("apiVersion", "kind", "metadata", "status") or (first == "spec" and not rest):
        r.ignore([key])
    elif tail.rpartition(".")[2] in COUNTS:
        r.put("on", None, key)
    elif parts[0] == "containers" and len(parts) > 2:
        classify_container(r, key, ".".join(parts[2:]))
    elif parts[0] in (*POD, "containers"):
        r.ignore([key])
    elif parts[0] == "resourceClaims":
        r.unsure(key, "accelerators that are claimed of a class: say them with --on")
    elif pods is not None and pods.place.endswith("trainer"):
        classify_container(r, key, ".".join(parts).replace("resourcesPerNode", "resources"))
    elif _own_part(rest) in OBJECT:
        r.ignore([key])


def _own_part(path: str) -> str:
    """The first name of a key's path that is no section around pods."""
    left = path.split(".")
    while left and (left[0] in SECTIONS or left[0] in NAMED):
        left = left[2:] if left[0] in NAMED else left[1:]
    return left[0] if left else "metadata"


def classify_container(r: Reading, key: str, tail: str) -> None:
    """A key of a container, `tail` from its first name on."""
    parts = tail.split(".")
    if parts[0] == "resources" and parts[1:2] in (["limits"], ["requests"]):
        name = ".".join(parts[2:])
        if name in COUNTED or name.startswith(MIG):
            r.put("on", None, key)
        else:
            r.ignore([key], NO_HOST_LIMIT if name == "memory" else "")
    elif parts[0] == "resources" and parts[1:2] == ["claims"]:
        r.unsure(key, "accelerators that are claimed of a class: say them with --on")
    elif parts[0] in CONTAINER or tail == "resources":
        r.ignore([key])
