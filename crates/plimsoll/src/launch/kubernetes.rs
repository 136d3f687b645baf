//! A manifest for Kubernetes: an indexed job of agents, one a node, and where it is asked for a job that conducts. Printed, for the user to
//! read and to apply. It needs nothing of the cluster beyond its own kinds.

use std::fmt::Write as _;

use aws_lc_rs::digest::{SHA256, digest};
use plimsoll_model::units::Size;

use plimsoll_bus::token::Token;

use super::kubernetes_script;
use crate::commands::fleet::ClaimWish;

/// Where the broker of a fleet that is conducted in the cluster listens.
pub const PORT: u16 = 4222;
/// Nobody in particular: the image's user.
const USER: u32 = 65_532;

/// What is asked for.
#[derive(Debug, Clone)]
pub struct ManifestWish {
    pub fleet: String,
    pub agents: u32,
    pub image: String,
    pub namespace: Option<String>,
    pub claim: Option<ClaimWish>,
    pub block: bool,
    pub host_network: bool,
    /// Secret with keys of the storage.
    pub credentials: Option<String>,
    pub cpus: u32,
    pub memory: Size,
    /// What tells this fleet's things from those of another one of the same name: see [`tag_of`].
    pub tag: String,
    /// With which agents join.
    pub token: String,
    /// Conducts in the cluster: the fleet's keys, and the command.
    pub conduct: Option<(String, Vec<String>)>,
}

/// Under which name agents find a broker in the cluster.
pub fn service_address(fleet: &str, tag: &str, namespace: Option<&str>) -> String {
    let host = name_of(fleet, tag);
    match namespace {
        Some(namespace) => format!("{host}.{namespace}.svc:{PORT}"),
        None => format!("{host}:{PORT}"),
    }
}

/// Six hexadecimal digits of the fleet itself, by its conductor's public key: two users of one namespace, who both call their fleet
/// `default`, do not replace each other's things.
pub fn tag_of(token: &Token) -> String {
    digest(&SHA256, token.conductor.as_bytes()).as_ref()[..3].iter().map(|b| format!("{b:02x}")).collect()
}

/// A name that Kubernetes takes for all kinds of things, also with what is added for each (63 characters at most).
fn name_of(fleet: &str, tag: &str) -> String {
    let fitting = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
    let name: String = fleet.chars().map(fitting).take(32).collect();
    format!("{}-{tag}", format!("plimsoll-{}", name.trim_matches('-')).trim_end_matches('-'))
}

/// The manifest, in YAML.
pub fn manifest(wish: &ManifestWish) -> String {
    let mut out = String::from(if wish.conduct.is_some() { HEAD_WITH_KEYS } else { HEAD });
    if wish.host_network {
        out.push_str("# hostNetwork: the namespace has to allow it (PodSecurity privileged).\n");
    }
    if wish.block {
        out.push_str(
            "# A raw device is open to a user who is not root only where the container runtime is set up for it\n\
             # (containerd: device_ownership_from_security_context = true).\n",
        );
    }
    secret(&mut out, wish);
    agents(&mut out, wish);
    if let Some((_, command)) = &wish.conduct {
        service(&mut out, wish);
        conductor(&mut out, wish, command);
    }
    out
}

const HEAD: &str = "\
# Made by `plimsoll fleet manifest`. It holds a secret: whoever reads it can join the fleet.
# kubectl apply -f FILE; at the end: kubectl delete -f FILE
";

const HEAD_WITH_KEYS: &str = "\
# Made by `plimsoll fleet manifest --conduct`. It holds the fleet's private keys: whoever reads it can join the fleet, and can
# conduct it, which is to give its agents orders.
# kubectl apply -f FILE; at the end: kubectl delete -f FILE
";

fn text(value: &str) -> String {
    // JSON's texts are YAML's, but for characters that YAML wants written out, and that would be seen by nobody.
    let json = serde_json::to_string(value).expect("a text is always JSON");
    let mut out = String::with_capacity(json.len());
    for c in json.chars() {
        if c.is_control() || is_unseen(c) {
            // All of them are below U+10000.
            let _ = write!(out, "\\u{:04x}", u32::from(c));
        } else {
            out.push(c);
        }
    }
    out
}

/// Ends of lines that are not ASCII's, changes of direction, the mark of byte order, and what is no character.
fn is_unseen(c: char) -> bool {
    matches!(
        c,
        '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}'
    )
}

fn meta(out: &mut String, wish: &ManifestWish, kind: &str, api: &str, name: &str) {
    // Writing to a text does not fail.
    let _ = write!(
        out,
        "---\napiVersion: {api}\nkind: {kind}\nmetadata:\n  name: {name}\n{namespace}  labels:\n    app.kubernetes.io/name: plimsoll\n    app.kubernetes.io/instance: {instance}\n",
        namespace = wish.namespace.as_ref().map_or(String::new(), |n| format!("  namespace: {}\n", text(n))),
        instance = name_of(&wish.fleet, &wish.tag),
    );
}

fn secret(out: &mut String, wish: &ManifestWish) {
    let name = name_of(&wish.fleet, &wish.tag);
    meta(out, wish, "Secret", "v1", &format!("{name}-join"));
    let _ = write!(out, "type: Opaque\nstringData:\n  token: {}\n", text(&wish.token));
    if let Some((keys, _)) = &wish.conduct {
        meta(out, wish, "Secret", "v1", &format!("{name}-keys"));
        let _ = write!(out, "type: Opaque\nstringData:\n  keys: {}\n", text(keys));
    }
}

/// What all pods have: no rights but to run, on the image's file system that nobody writes to.
fn pod(out: &mut String, wish: &ManifestWish, role: &str) {
    let _ = write!(
        out,
        "  template:
    metadata:
      labels:
        app.kubernetes.io/name: plimsoll
        app.kubernetes.io/instance: {instance}
        app.kubernetes.io/component: {role}
    spec:
      restartPolicy: Never
      # What was made is removed, and results are brought home.
      terminationGracePeriodSeconds: 300
      automountServiceAccountToken: false
      enableServiceLinks: false
      securityContext:
        runAsNonRoot: true
        runAsUser: {USER}
        runAsGroup: {USER}
        fsGroup: {USER}
        seccompProfile:
          type: RuntimeDefault
",
        instance = name_of(&wish.fleet, &wish.tag),
    );
}

fn container(out: &mut String, wish: &ManifestWish, role: &str, cpus: u32, memory_mib: u64) {
    let _ = write!(
        out,
        "      containers:
        - name: {role}
          image: {image}
          securityContext:
            allowPrivilegeEscalation: false
            readOnlyRootFilesystem: true
            capabilities:
              drop: [ALL]
          resources:
            requests:
              cpu: \"{cpus}\"
              memory: {memory_mib}Mi
            limits:
              cpu: \"{cpus}\"
              memory: {memory_mib}Mi
",
        image = text(&wish.image),
    );
}

fn storage_keys(out: &mut String, wish: &ManifestWish) {
    if let Some(secret) = &wish.credentials {
        let _ = write!(
            out,
            "          envFrom:\n            - secretRef:\n                name: {}\n",
            text(secret)
        );
    }
}

fn agents(out: &mut String, wish: &ManifestWish) {
    let name = name_of(&wish.fleet, &wish.tag);
    meta(out, wish, "Job", "batch/v1", &format!("{name}-agents"));
    let _ = write!(
        out,
        "spec:
  completionMode: Indexed
  completions: {n}
  parallelism: {n}
  backoffLimit: 0
  ttlSecondsAfterFinished: 3600
",
        n = wish.agents,
    );
    pod(out, wish, "agent");
    if wish.host_network {
        out.push_str("      hostNetwork: true\n      dnsPolicy: ClusterFirstWithHostNet\n");
    }
    // Two on one node would share its network, and each would be measured as half of it.
    let _ = write!(
        out,
        "      affinity:
        podAntiAffinity:
          requiredDuringSchedulingIgnoredDuringExecution:
            - topologyKey: kubernetes.io/hostname
              labelSelector:
                matchLabels:
                  app.kubernetes.io/name: plimsoll
                  app.kubernetes.io/component: agent
",
    );
    container(out, wish, "agent", wish.cpus, wish.memory.0.div_ceil(1 << 20));
    let allowed = match (&wish.claim, wish.block) {
        (None, _) => String::new(),
        (Some(_), false) => ", --allow-dir, /data".to_owned(),
        (Some(_), true) => ", --allow-device, /dev/plimsoll".to_owned(),
    };
    // A name for each: with the nodes' network, a pod's host name is the node's.
    let _ = write!(
        out,
        "          command: [plimsoll, agent, --until-idle, 1h, --name, $(AGENT_NAME), --runs-dir, /runs{allowed}]
          env:
            - name: JOB_COMPLETION_INDEX
              valueFrom:
                fieldRef:
                  fieldPath: metadata.annotations['batch.kubernetes.io/job-completion-index']
            - name: AGENT_NAME
              value: agent-$(JOB_COMPLETION_INDEX)
            - name: PLIMSOLL_NODE
              valueFrom:
                fieldRef:
                  fieldPath: spec.nodeName
            - name: PLIMSOLL_JOIN
              valueFrom:
                secretKeyRef:
                  name: {name}-join
                  key: token
"
    );
    storage_keys(out, wish);
    out.push_str("          volumeMounts:\n            - name: runs\n              mountPath: /runs\n");
    match (&wish.claim, wish.block) {
        (Some(_), false) => out.push_str("            - name: data\n              mountPath: /data\n"),
        (Some(_), true) => {
            out.push_str("          volumeDevices:\n            - name: data\n              devicePath: /dev/plimsoll\n");
        }
        _ => {}
    }
    out.push_str("      volumes:\n        - name: runs\n          emptyDir: {}\n");
    if let Some(claim) = &wish.claim {
        // A claim that is the pod's own: it goes with it.
        let _ = write!(
            out,
            "        - name: data
          ephemeral:
            volumeClaimTemplate:
              spec:
                accessModes: [ReadWriteOnce]
                storageClassName: {class}
                volumeMode: {mode}
                resources:
                  requests:
                    storage: \"{bytes}\"
",
            class = text(&claim.class),
            mode = if wish.block { "Block" } else { "Filesystem" },
            bytes = claim.size.0,
        );
    }
}

fn service(out: &mut String, wish: &ManifestWish) {
    let name = name_of(&wish.fleet, &wish.tag);
    meta(out, wish, "Service", "v1", &name);
    // Found before it is ready: agents try again until it is.
    let _ = write!(
        out,
        "spec:
  clusterIP: None
  publishNotReadyAddresses: true
  selector:
    app.kubernetes.io/instance: {name}
    app.kubernetes.io/component: conductor
  ports:
    - name: nats
      port: {PORT}
"
    );
}

fn conductor(out: &mut String, wish: &ManifestWish, command: &[String]) {
    let name = name_of(&wish.fleet, &wish.tag);
    meta(out, wish, "Job", "batch/v1", &format!("{name}-conductor"));
    out.push_str("spec:\n  backoffLimit: 0\n  ttlSecondsAfterFinished: 86400\n");
    pod(out, wish, "conductor");
    container(out, wish, "conductor", 1, 1024);
    let script = kubernetes_script::conducting(&wish.fleet, wish.agents, command);
    // Kubernetes replaces $(NAME) in a command: none is left in it.
    let _ = write!(
        out,
        "          command: [sh, -c, {script}]
          env:
            - name: XDG_RUNTIME_DIR
              value: /state
            - name: HOME
              value: /state
            - name: PLIMSOLL_RUNS
              value: /runs
          ports:
            - name: nats
              containerPort: {PORT}
",
        script = text(&script.replace("$(", "$$(")),
    );
    storage_keys(out, wish);
    let _ = write!(
        out,
        "          volumeMounts:
            - name: runs
              mountPath: /runs
            - name: state
              mountPath: /state
            - name: tmp
              mountPath: /tmp
            - name: keys
              mountPath: /keys
              readOnly: true
      volumes:
        - name: runs
          emptyDir: {{}}
        - name: state
          emptyDir: {{}}
        - name: tmp
          emptyDir: {{}}
        - name: keys
          secret:
            secretName: {name}-keys
            defaultMode: 288
"
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    fn conducted(words: &[&str]) -> ManifestWish {
        ManifestWish {
            fleet: "demo".into(),
            tag: "0a1b2c".into(),
            agents: 2,
            image: "i".into(),
            namespace: None,
            claim: None,
            block: false,
            host_network: false,
            credentials: None,
            cpus: 1,
            memory: Size(1 << 30),
            token: "t".into(),
            conduct: Some(("{\"k\":1}".into(), words.iter().map(|w| (*w).to_owned()).collect())),
        }
    }

    /// What Kubernetes makes of the conductor's command.
    fn script_of(wish: &ManifestWish) -> String {
        let yaml = manifest(wish);
        let line = yaml.lines().find(|l| l.contains("command: [sh, -c, ")).unwrap();
        let json = line.split_once("-c, ").unwrap().1.trim_end_matches(']');
        serde_json::from_str::<String>(json).unwrap().replace("$$(", "$(")
    }

    #[test]
    fn names_are_kubernetes_own() {
        assert_eq!(name_of("Lab_7", "0a1b2c"), "plimsoll-lab-7-0a1b2c");
        assert_eq!(name_of("_", "0a1b2c"), "plimsoll-0a1b2c");
        let longest = name_of(&"a".repeat(63), "0a1b2c");
        assert!(format!("{longest}-conductor").len() <= 63 && format!("{longest}-agents-99999").len() <= 63);
        assert_eq!(service_address("demo", "0a1b2c", Some("bench")), "plimsoll-demo-0a1b2c.bench.svc:4222");
        assert_eq!(service_address("demo", "0a1b2c", None), "plimsoll-demo-0a1b2c:4222");
    }

    #[test]
    fn fleets_of_one_name_have_things_of_their_own() {
        let token = || {
            let keys = plimsoll_bus::keeper::KeySet::make("default").unwrap();
            keys.token("default", Vec::new(), 1).unwrap()
        };
        let (mine, yours) = (token(), token());
        assert_ne!(tag_of(&mine), tag_of(&yours));
        assert_eq!(tag_of(&mine), tag_of(&Token { expires_s: 2, ..mine.clone() }), "a fleet keeps its own");
        let yaml = manifest(&conducted(&["object", "get"]));
        let names = yaml.lines().filter(|l| l.starts_with("  name: ") || l.contains("/instance: "));
        let names: Vec<&str> = names.collect();
        assert!(names.len() > 8 && names.iter().all(|n| n.contains("plimsoll-demo-0a1b2c")), "{names:?}");
        assert_eq!(yaml.matches("terminationGracePeriodSeconds: 300").count(), 2);
    }

    #[test]
    fn a_manifest_with_the_fleets_keys_says_so() {
        let mut wish = conducted(&["object", "get"]);
        assert!(manifest(&wish).starts_with(HEAD_WITH_KEYS));
        wish.conduct = None;
        assert!(manifest(&wish).starts_with(HEAD));
    }

    #[test]
    fn what_nobody_sees_is_written_out() {
        let odd = "a\u{7f}\u{85}\u{9b}\u{2028}\u{2029}\u{202e}\u{feff}\n\u{1b}z\u{e9}";
        let told = text(odd);
        assert_eq!(told, "\"a\\u007f\\u0085\\u009b\\u2028\\u2029\\u202e\\ufeff\\n\\u001bz\u{e9}\"");
        assert_eq!(serde_json::from_str::<String>(&told).unwrap(), odd);
    }

    #[test]
    fn a_script_keeps_its_words_through_yaml() {
        let words = ["object", "get", "--label", "it's $(date)", "--endpoint", "http://n{1...4}:9000"];
        let wish = conducted(&words);
        let (_, command) = wish.conduct.as_ref().unwrap();
        assert_eq!(script_of(&wish), kubernetes_script::conducting("demo", 2, command));
    }
}
