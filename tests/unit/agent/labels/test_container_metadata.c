#include "tests/unit/test.h"

#include "agent/labels/container_metadata.h"
#include "agent/labels/label_set.h"
#include "agent/labels/pods.h"
#include "agent/labels/program_info.h"
#include "lib/base/arena.h"
#include "lib/base/err.h"
#include "lib/base/os.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define ID_A "a3f1c2d4e5b60718293a4b5c6d7e8f90a1b2c3d4e5f60718293a4b5c6d7e8f90"
#define ID_B "b3f1c2d4e5b60718293a4b5c6d7e8f90a1b2c3d4e5f60718293a4b5c6d7e8f90"

/* The response of `kubectl get --raw /api/v1/nodes/NODE/proxy/pods`, with fewer fields. */
static const char pods_json[] =
    "{\"kind\":\"PodList\",\"apiVersion\":\"v1\",\"metadata\":{},\"items\":[{\"metadata\":{"
    "\"name\":\"web-6f756468f6-x2x7v\",\"generateName\":\"web-6f756468f6-\",\"namespace\":\"shop\","
    "\"uid\":\"5f7a3b8e-93bb-4b8e-8f3b-0d5f3c0f1a11\",\"labels\":{"
    "\"app.kubernetes.io/name\":\"web\",\"pod-template-hash\":\"6f756468f6\",\"tier\":\"front\"},"
    "\"annotations\":{\"kubernetes.io/config.seen\":\"2026-01-02T03:04:05Z\"},"
    "\"ownerReferences\":[{\"apiVersion\":\"apps/v1\",\"kind\":\"ReplicaSet\","
    "\"name\":\"web-6f756468f6\",\"uid\":\"0d\",\"controller\":true}]},"
    "\"spec\":{\"nodeName\":\"node-7\",\"containers\":[{\"name\":\"nginx\"}]},"
    "\"status\":{\"phase\":\"Running\",\"conditions\":[{\"type\":\"Initialized\",\"status\":"
    "\"True\"},"
    "{\"type\":\"Ready\",\"status\":\"False\"}],\"hostIP\":\"10.0.0.7\",\"podIP\":\"10.1.2.3\","
    "\"initContainerStatuses\":[{\"name\":\"setup\",\"image\":\"busybox:1\","
    "\"containerID\":\"containerd://" ID_B "\"}],"
    "\"containerStatuses\":[{\"name\":\"nginx\",\"ready\":true,\"image\":\"nginx:1.25\","
    "\"containerID\":\"containerd://" ID_A "\"}]}},"
    "{\"metadata\":{\"name\":\"pending\"},\"status\":{\"phase\":\"Pending\"}}]}";

static void assert_label(const struct label_set *set, const char *name, const char *value)
{
    const struct span found = label_set_get(set, span_text(name));
    if (!span_equal_text(found, value))
        fail_msg("%s is \"%.*s\", not \"%s\"", name, SPAN_PRINT(found), value);
}

static void a_container_is_found_in_the_list_of_pods_with_its_attributes(void **state)
{
    (void)state;
    arena_auto arena = arena_create();
    struct pod_list *list;
    struct label_set set;
    struct err err;
    label_set_init(&set, arena);
    assert_int_equal(pod_list_read(SPAN_LITERAL(pods_json), arena, &list, &err), ERR_NONE);
    assert_true(pod_list_find(list, SPAN_LITERAL(ID_A), &set));
    assert_label(&set, "k8s_pod_name", "web-6f756468f6-x2x7v");
    assert_label(&set, "k8s_namespace_name", "shop");
    assert_label(&set, "k8s_container_name", "nginx");
    assert_label(&set, "k8s_node_name", "node-7");
    assert_label(&set, "k8s_pod_label_tier", "front");
    assert_label(&set, "k8s_pod_label_pod_template_hash", "");
    assert_label(&set, "container_image_name", "nginx:1.25");
    assert_label(&set, "__meta_kubernetes_pod_label_app_kubernetes_io_name", "web");
    assert_label(&set, "__meta_kubernetes_pod_labelpresent_app_kubernetes_io_name", "true");
    assert_label(&set, "__meta_kubernetes_pod_label_pod_template_hash", "6f756468f6");
    assert_label(&set, "__meta_kubernetes_pod_annotation_kubernetes_io_config_seen",
                 "2026-01-02T03:04:05Z");
    assert_label(&set, "__meta_kubernetes_pod_controller_kind", "ReplicaSet");
    assert_label(&set, "__meta_kubernetes_pod_controller_name", "web-6f756468f6");
    assert_label(&set, "__meta_kubernetes_pod_ready", "false");
    assert_label(&set, "__meta_kubernetes_pod_phase", "Running");
    assert_label(&set, "__meta_kubernetes_pod_ip", "10.1.2.3");
    assert_label(&set, "__meta_kubernetes_pod_host_ip", "10.0.0.7");
    assert_label(&set, "__meta_kubernetes_pod_container_init", "false");
    assert_label(&set, "__meta_kubernetes_pod_container_id", "containerd://" ID_A);
    label_set_init(&set, arena);
    assert_true(pod_list_find(list, SPAN_LITERAL(ID_B), &set));
    assert_label(&set, "__meta_kubernetes_pod_container_init", "true");
    assert_false(pod_list_find(list, SPAN_LITERAL("other"), &set));
    assert_int_equal(pod_list_read(SPAN_LITERAL("{\"kind\":\"Status\"}"), arena, &list, &err),
                     ERR_INVALID);
    assert_int_equal(pod_list_read(SPAN_LITERAL("Unauthorized"), arena, &list, &err), ERR_INVALID);
}

/* ---- state files ---- */

static char root[64];

static void write_file(const char *path, const char *text)
{
    char whole[512];
    snprintf(whole, sizeof(whole), "%s%s", root, path);
    for (char *at = whole + strlen(root) + 1; *at; at++) {
        if (*at != '/')
            continue;
        *at = 0;
        assert_true(mkdir(whole, 0700) == 0 || errno == EEXIST);
        *at = '/';
    }
    fd_auto fd = os_openat(AT_FDCWD, whole, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    assert_true(fd >= 0 && os_write_all(fd, text, strlen(text)) == 0);
}

static int make_root(void **state)
{
    (void)state;
    snprintf(root, sizeof(root), "/tmp/containers.XXXXXX");
    return mkdtemp(root) ? 0 : -1;
}

static int remove_one(const char *path, const struct stat *status, int type, struct FTW *walk)
{
    (void)status, (void)type, (void)walk;
    return remove(path);
}

static int remove_root(void **state)
{
    (void)state;
    return nftw(root, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

static void containerds_state_names_the_pod(void **state)
{
    (void)state;
    arena_auto arena = arena_create();
    struct label_set set;
    label_set_init(&set, arena);
    assert_false(container_metadata_find(root, SPAN_LITERAL(ID_A), &set));
    write_file("/run/containerd/io.containerd.runtime.v2.task/k8s.io/" ID_A "/config.json",
               "{\"ociVersion\":\"1.1.0\",\"hostname\":\"web\",\"annotations\":{"
               "\"io.kubernetes.cri.container-name\":\"nginx\","
               "\"io.kubernetes.cri.container-type\":\"container\","
               "\"io.kubernetes.cri.image-name\":\"docker.io/library/nginx:1.25\","
               "\"io.kubernetes.cri.sandbox-name\":\"web-x2x7v\","
               "\"io.kubernetes.cri.sandbox-namespace\":\"shop\","
               "\"io.kubernetes.cri.sandbox-uid\":\"5f7a3b8e\"}}");
    assert_true(container_metadata_find(root, SPAN_LITERAL(ID_A), &set));
    assert_label(&set, "container_name", "nginx");
    assert_label(&set, "k8s_container_name", "nginx");
    assert_label(&set, "k8s_pod_name", "web-x2x7v");
    assert_label(&set, "k8s_namespace_name", "shop");
    assert_label(&set, "container_image_name", "docker.io/library/nginx:1.25");
    assert_label(&set, "__meta_containerd_container_name", "nginx");
    assert_label(&set, "__meta_containerd_pod_name", "web-x2x7v");
    assert_label(&set, "__meta_kubernetes_namespace", "shop");
}

static void crios_state_names_the_pod_and_its_labels(void **state)
{
    (void)state;
    arena_auto arena = arena_create();
    struct label_set set;
    label_set_init(&set, arena);
    write_file("/run/containers/storage/overlay-containers/" ID_A "/userdata/config.json",
               "{\"annotations\":{\"io.kubernetes.container.name\":\"nginx\","
               "\"io.kubernetes.pod.name\":\"web-x2x7v\",\"io.kubernetes.pod.namespace\":\"shop\","
               "\"io.kubernetes.pod.uid\":\"5f7a\","
               "\"io.kubernetes.cri-o.ImageName\":\"nginx:1.25\","
               "\"io.kubernetes.cri-o.Labels\":\"{\\\"tier\\\":\\\"front\\\"}\"}}");
    assert_true(container_metadata_find(root, SPAN_LITERAL(ID_A), &set));
    assert_label(&set, "k8s_pod_name", "web-x2x7v");
    assert_label(&set, "k8s_pod_label_tier", "front");
    assert_label(&set, "__meta_kubernetes_pod_label_tier", "front");
    assert_label(&set, "__meta_kubernetes_pod_container_image", "nginx:1.25");
}

static void dockers_and_podmans_state_name_the_container(void **state)
{
    (void)state;
    arena_auto arena = arena_create();
    struct label_set set;
    label_set_init(&set, arena);
    write_file("/var/lib/docker/containers/" ID_A "/config.v2.json",
               "{\"ID\":\"" ID_A "\",\"Name\":\"/shop_web_1\",\"Config\":{\"Image\":\"nginx:1.25\","
               "\"Labels\":{\"io.kubernetes.pod.name\":\"web-1\"}}}");
    assert_true(container_metadata_find(root, SPAN_LITERAL(ID_A), &set));
    assert_label(&set, "container_name", "shop_web_1");
    assert_label(&set, "__meta_docker_container_name", "shop_web_1");
    assert_label(&set, "container_image_name", "nginx:1.25");
    assert_label(&set, "k8s_pod_name", "web-1");
    label_set_init(&set, arena);
    write_file("/var/lib/containers/storage/overlay-containers/containers.json",
               "[{\"id\":\"x\"},{\"id\":\"" ID_B "\",\"names\":[\"db\"],\"image\":\"0f\"}]");
    assert_true(container_metadata_find(root, SPAN_LITERAL(ID_B), &set));
    assert_label(&set, "container_name", "db");
}

static void a_malformed_state_file_has_no_labels(void **state)
{
    (void)state;
    arena_auto arena = arena_create();
    struct label_set set;
    label_set_init(&set, arena);
    write_file("/var/lib/docker/containers/" ID_A "/config.v2.json", "{\"Name\":");
    write_file("/var/lib/containers/storage/overlay-containers/containers.json",
               "{\"id\":7,\"names\":{}}");
    assert_false(container_metadata_find(root, SPAN_LITERAL(ID_A), &set));
    assert_int_equal(set.count, 0);
}

static void the_cgroup_identifies_the_runtime(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"/system.slice/docker-" ID_A ".scope", "docker"},
        {"/docker/" ID_A, "docker"},
        {"/kubepods.slice/kubepods-pod1.slice/cri-containerd-" ID_A ".scope", "containerd"},
        {"/kubepods.slice/kubepods-pod1.slice/crio-" ID_A ".scope", "cri-o"},
        {"/machine.slice/libpod-" ID_A ".scope/container", "podman"},
        {"/user.slice/user-0.slice", ""}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
        assert_true(
            span_equal_text(container_metadata_runtime(span_text(cases[i][0])), cases[i][1]));
}

static void this_programs_compiler_is_known(void **state)
{
    (void)state;
    struct program_info facts;
    fd_auto own = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    fd_auto other = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    program_info_read(own, &facts);
    assert_true(strstr(facts.compiler, "GCC") || strstr(facts.compiler, "clang"));
    assert_false(facts.is_static || facts.is_stripped);
    program_info_read(other, &facts);
    assert_string_equal(facts.compiler, "");
    program_info_read(-1, &facts);
    assert_string_equal(facts.compiler, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_container_is_found_in_the_list_of_pods_with_its_attributes),
        cmocka_unit_test_setup_teardown(containerds_state_names_the_pod, make_root, remove_root),
        cmocka_unit_test_setup_teardown(crios_state_names_the_pod_and_its_labels, make_root,
                                        remove_root),
        cmocka_unit_test_setup_teardown(dockers_and_podmans_state_name_the_container, make_root,
                                        remove_root),
        cmocka_unit_test_setup_teardown(a_malformed_state_file_has_no_labels, make_root,
                                        remove_root),
        cmocka_unit_test(the_cgroup_identifies_the_runtime),
        cmocka_unit_test(this_programs_compiler_is_known),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
