// One case: the scheduling cycle, as kube-scheduler runs it.

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"runtime/debug"
	"slices"
	"sort"
	"time"

	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/informers"
	clientset "k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"
	"k8s.io/dynamic-resource-allocation/deviceclass/extendedresourcecache"
	resourceslicetracker "k8s.io/dynamic-resource-allocation/resourceslice/tracker"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/features"
	schedulerapi "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/latest"
	configscheme "k8s.io/kubernetes/pkg/scheduler/apis/config/scheme"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/validation"
	internalcache "k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	frameworkplugins "k8s.io/kubernetes/pkg/scheduler/framework/plugins"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/dynamicresources"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodevolumelimits"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	"k8s.io/kubernetes/pkg/scheduler/util/assumecache"
)

func loadConfig(raw json.RawMessage) (*schedulerapi.KubeSchedulerConfiguration, error) {
	trimmed := bytes.TrimSpace(raw)
	if len(trimmed) == 0 || bytes.Equal(trimmed, []byte("null")) {
		return latest.Default()
	}
	// This is loadConfig() of cmd/kube-scheduler/app/options.
	obj, gvk, err := configscheme.Codecs.UniversalDecoder().Decode(trimmed, nil, nil)
	if err != nil {
		return nil, err
	}
	cfg, ok := obj.(*schedulerapi.KubeSchedulerConfiguration)
	if !ok {
		return nil, fmt.Errorf("couldn't decode as KubeSchedulerConfiguration, got %s", gvk)
	}
	cfg.TypeMeta.APIVersion = gvk.GroupVersion().String()
	if err := validation.ValidateKubeSchedulerConfiguration(cfg); err != nil {
		return nil, err
	}
	return cfg, nil
}

func toStatus(s *fwk.Status) *status {
	reasons := slices.Clone(s.Reasons())
	if reasons == nil {
		reasons = []string{}
	}
	// NodeResourcesFit goes through a map of the extended resources.
	sort.Strings(reasons)
	return &status{Plugin: s.Plugin(), Code: s.Code().String(), Reasons: reasons}
}

// setFeatureGates sets the gates in a copy of the process-wide gates, so that
// nothing is left over for the next case.
func setFeatureGates(gates map[string]bool) (restore func(), err error) {
	if len(gates) == 0 {
		return func() {}, nil
	}
	mutable, readOnly := utilfeature.DefaultMutableFeatureGate, utilfeature.DefaultFeatureGate
	restore = func() {
		utilfeature.DefaultMutableFeatureGate, utilfeature.DefaultFeatureGate = mutable, readOnly
	}
	gate := mutable.DeepCopy()
	utilfeature.DefaultMutableFeatureGate, utilfeature.DefaultFeatureGate = gate, gate
	if err := gate.SetFromMap(gates); err != nil {
		restore()
		return func() {}, err
	}
	return restore, nil
}

var deserializer = clientscheme.Codecs.UniversalDeserializer()

func podKey(p *v1.Pod) string { return p.Namespace + "/" + p.Name }

func evaluate(tc *testCase, timed bool) (res *result) {
	res = &result{Name: tc.Name}
	fail := func(format string, args ...interface{}) *result {
		return &result{Name: tc.Name, Error: fmt.Sprintf(format, args...)}
	}
	defer func() {
		if r := recover(); r != nil {
			fmt.Fprintf(os.Stderr, "panic in case %q: %v\n%s\n", tc.Name, r, debug.Stack())
			res = fail("panic: %v", r)
		}
	}()

	restore, err := setFeatureGates(tc.FeatureGates)
	if err != nil {
		return fail("feature gates: %v", err)
	}
	defer restore()

	cfg, err := loadConfig(tc.Config)
	if err != nil {
		return fail("config: %v", err)
	}
	if len(cfg.Profiles) == 0 {
		return fail("config: no profile")
	}
	profile := &cfg.Profiles[0]

	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	logger := klog.FromContext(ctx)

	// Objects.
	byType := map[reflect.Type][]interface{}{}
	var nodes []*v1.Node
	var pods []*v1.Pod
	add := func(raw []byte, isIncoming bool) (*v1.Pod, error) {
		var obj runtime.Object
		var kind string
		if isIncoming {
			p := &v1.Pod{}
			if err := json.Unmarshal(raw, p); err != nil {
				return nil, err
			}
			obj, kind = p, "Pod"
		} else {
			o, gvk, err := deserializer.Decode(raw, nil, nil)
			if err != nil {
				return nil, err
			}
			obj, kind = o, gvk.Kind
		}
		acc, err := meta.Accessor(obj)
		if err != nil {
			return nil, err
		}
		if acc.GetNamespace() == "" && !clusterScoped[kind] {
			acc.SetNamespace("default")
		}
		if acc.GetUID() == "" {
			acc.SetUID(types.UID(kind + "/" + acc.GetNamespace() + "/" + acc.GetName()))
		}
		if acc.GetResourceVersion() == "" {
			acc.SetResourceVersion("1")
		}
		switch o := obj.(type) {
		case *v1.Pod:
			// The scheduler's pod informer does not see finished pods.
			if o.Status.Phase == v1.PodSucceeded || o.Status.Phase == v1.PodFailed {
				return o, nil
			}
			pods = append(pods, o)
		case *v1.Node:
			nodes = append(nodes, o)
		}
		t := reflect.TypeOf(obj)
		byType[t] = append(byType[t], obj)
		if isIncoming {
			return obj.(*v1.Pod), nil
		}
		return nil, nil
	}
	for i, raw := range tc.Objects {
		if _, err := add(raw, false); err != nil {
			return fail("object %d: %v", i, err)
		}
	}
	numExisting := len(pods)
	pod, err := add(tc.Pod, true)
	if err != nil {
		return fail("pod: %v", err)
	}

	// Client: only claims (deallocation in PostFilter) and nominated pods
	// (clearing the nomination) are ever written.
	var tracked []runtime.Object
	for _, p := range pods {
		if p.Spec.NodeName == "" && p.Status.NominatedNodeName != "" {
			tracked = append(tracked, p.DeepCopy())
		}
	}
	for _, o := range byType[reflect.TypeOf(&resourcev1.ResourceClaim{})] {
		tracked = append(tracked, o.(runtime.Object).DeepCopyObject())
	}
	client := fake.NewSimpleClientset(tracked...) //nolint:staticcheck // NewClientset is much slower.

	factory := informers.NewSharedInformerFactory(client, 0)
	for _, t := range informedTypes {
		inf := newStaticInformer(byType[reflect.TypeOf(t)])
		factory.InformerFor(t, func(clientset.Interface, time.Duration) cache.SharedIndexInformer { return inf })
	}

	// What scheduler.New() does.
	snapshot := internalcache.NewEmptySnapshot()
	var draManager fwk.SharedDRAManager
	if utilfeature.DefaultFeatureGate.Enabled(features.DynamicResourceAllocation) {
		claimCache := assumecache.NewAssumeCache(logger, factory.Resource().V1().ResourceClaims().Informer(), "ResourceClaim", "", nil)
		opts := resourceslicetracker.Options{
			EnableDeviceTaintRules:   utilfeature.DefaultFeatureGate.Enabled(features.DRADeviceTaintRules),
			EnableConsumableCapacity: utilfeature.DefaultFeatureGate.Enabled(features.DRAConsumableCapacity),
			SliceInformer:            factory.Resource().V1().ResourceSlices(),
		}
		if opts.EnableDeviceTaintRules {
			opts.TaintInformer = factory.Resource().V1beta2().DeviceTaintRules()
			opts.ClassInformer = factory.Resource().V1().DeviceClasses()
		}
		tracker, err := resourceslicetracker.StartTracker(ctx, opts)
		if err != nil {
			return fail("resource slice tracker: %v", err)
		}
		m := dynamicresources.NewDRAManager(ctx, claimCache, tracker, factory)
		if utilfeature.DefaultFeatureGate.Enabled(features.DRAExtendedResource) {
			if erCache, ok := m.DeviceClassResolver().(*extendedresourcecache.ExtendedResourceCache); ok {
				_, _ = factory.Resource().V1().DeviceClasses().Informer().AddEventHandler(erCache)
			}
		}
		draManager = m
	}
	schedCache := internalcache.New(ctx, nil, utilfeature.DefaultFeatureGate.Enabled(features.GenericWorkload))

	plugins := map[string]fwk.Plugin{}
	registry := frameworkruntime.Registry{}
	for name, f := range frameworkplugins.NewInTreeRegistry() {
		registry[name] = func(ctx context.Context, args runtime.Object, h fwk.Handle) (fwk.Plugin, error) {
			p, err := f(ctx, args, h)
			if err == nil {
				plugins[name] = p
			}
			return p, err
		}
	}

	nom := nominator{}
	fw, err := frameworkruntime.NewFramework(ctx, registry, profile,
		frameworkruntime.WithComponentConfigVersion(cfg.TypeMeta.APIVersion),
		frameworkruntime.WithClientSet(client),
		frameworkruntime.WithInformerFactory(factory),
		frameworkruntime.WithSharedDRAManager(draManager),
		frameworkruntime.WithSnapshotSharedLister(snapshot),
		frameworkruntime.WithParallelism(1),
		frameworkruntime.WithEventRecorder(&events.FakeRecorder{}),
		frameworkruntime.WithWaitingPods(frameworkruntime.NewWaitingPodsMap()),
		frameworkruntime.WithPodsInPreBind(frameworkruntime.NewPodsInPreBindMap()),
		frameworkruntime.WithSharedCSIManager(nodevolumelimits.NewCSIManager(factory.Storage().V1().CSINodes().Lister())),
		frameworkruntime.WithPodGroupManager(schedCache),
		frameworkruntime.WithPodNominator(nom),
		frameworkruntime.WithPodActivator(activator{}),
	)
	if err != nil {
		return fail("framework: %v", err)
	}
	defer func() { _ = fw.Close() }()

	for _, n := range nodes {
		schedCache.AddNode(logger, n)
	}
	for _, p := range pods[:numExisting] {
		switch {
		case p.Spec.NodeName != "":
			if err := schedCache.AddPod(logger, p); err != nil {
				return fail("pod %s: %v", podKey(p), err)
			}
		case p.Status.NominatedNodeName != "" && schedulerName(p) == profile.SchedulerName:
			pi, _ := framework.NewPodInfo(p)
			nom[p.Status.NominatedNodeName] = append(nom[p.Status.NominatedNodeName], pi)
		}
	}
	if pod.Status.NominatedNodeName != "" {
		pi, _ := framework.NewPodInfo(pod)
		nom[pod.Status.NominatedNodeName] = append(nom[pod.Status.NominatedNodeName], pi)
	}
	if err := schedCache.UpdateSnapshot(logger, snapshot); err != nil {
		return fail("snapshot: %v", err)
	}

	var clock *meter
	if timed {
		clock = newMeter()
		defer func() { res.Seconds = clock.seconds() }()
	}
	clock.run()

	// PreEnqueue.
	for _, pl := range fw.PreEnqueuePlugins() {
		if s := pl.PreEnqueue(ctx, pod); !s.IsSuccess() {
			s.SetPlugin(pl.Name())
			res.PreEnqueue = toStatus(s)
			res.Result = "gated"
			return res
		}
	}

	allNodes, err := snapshot.NodeInfos().List()
	if err != nil {
		return fail("nodes: %v", err)
	}
	allNodes = slices.Clone(allNodes)
	sort.Slice(allNodes, func(i, j int) bool { return allNodes[i].Node().Name < allNodes[j].Node().Name })
	if len(allNodes) == 0 {
		res.Result = "noNodes"
		res.Message = "no nodes available to schedule pods"
		res.Feasible = []string{}
		return res
	}

	// PreFilter; this follows findNodesThatFitPod().
	state := framework.NewCycleState()
	diagnosis := framework.Diagnosis{NodeToStatus: framework.NewDefaultNodeToStatus()}
	preRes, s, rejectors := fw.RunPreFilterPlugins(ctx, state, pod)
	diagnosis.UnschedulablePlugins = rejectors
	pf := &preFilterResult{Code: s.Code().String(), Skipped: sets.List(state.GetSkipFilterPlugins())}
	if pf.Skipped == nil {
		pf.Skipped = []string{}
	}
	if !preRes.AllNodes() {
		pf.NodeNames = sets.List(preRes.NodeNames)
		if pf.NodeNames == nil {
			pf.NodeNames = []string{}
		}
	}
	res.PreFilter = pf
	feasible := []fwk.NodeInfo{}
	if !s.IsSuccess() {
		pf.Plugin = s.Plugin()
		pf.Reasons = s.Reasons()
		if !s.IsRejected() {
			res.Result = "error"
			res.Message = s.AsError().Error()
			return res
		}
		diagnosis.NodeToStatus.SetAbsentNodesStatus(s)
		diagnosis.PreFilterMsg = s.Message()
		diagnosis.AddPluginStatus(s)
	} else {
		// Filter.
		res.Nodes = map[string]*status{}
		if !preRes.AllNodes() {
			absent := fwk.NewStatus(fwk.UnschedulableAndUnresolvable, fmt.Sprintf("node(s) didn't satisfy plugin(s) %v", sets.List(rejectors)))
			diagnosis.NodeToStatus.SetAbsentNodesStatus(absent)
			for _, n := range allNodes {
				if !preRes.NodeNames.Has(n.Node().Name) {
					res.Nodes[n.Node().Name] = toStatus(absent)
				}
			}
		}
		var filterErr error
		for _, n := range allNodes {
			name := n.Node().Name
			if !preRes.AllNodes() && !preRes.NodeNames.Has(name) {
				continue
			}
			s := fw.RunFilterPluginsWithNominatedPods(ctx, state, pod, n)
			if s.IsSuccess() {
				res.Nodes[name] = nil
				feasible = append(feasible, n)
			} else {
				res.Nodes[name] = toStatus(s)
				if s.Code() == fwk.Error {
					if filterErr == nil {
						filterErr = s.AsError()
					}
				} else {
					diagnosis.NodeToStatus.Set(name, s)
					diagnosis.AddPluginStatus(s)
				}
			}
			if name == pod.Status.NominatedNodeName {
				ok := s.IsSuccess()
				res.NominatedNodePasses = &ok
			}
		}
		if filterErr != nil && (res.NominatedNodePasses == nil || !*res.NominatedNodePasses) {
			res.Result = "error"
			res.Message = filterErr.Error()
			return res
		}
	}
	res.Feasible = []string{}
	for _, n := range feasible {
		res.Feasible = append(res.Feasible, n.Node().Name)
	}

	if len(feasible) > 0 {
		res.Result = "feasible"
		if err := score(ctx, res, fw, plugins, state, pod, feasible, clock); err != nil {
			res.Scores, res.Best, res.ScoreSkipped = nil, nil, nil
			if len(feasible) == 1 {
				// kube-scheduler does not score a single node.
				res.ScoreError = err.Error()
				res.Best = res.Feasible
			} else {
				res.Result = "error"
				res.Message = err.Error()
			}
		}
		return res
	}

	res.Result = "unschedulable"
	fitError := &framework.FitError{Pod: pod, NumAllNodes: len(allNodes), Diagnosis: diagnosis}
	if fw.HasPostFilterPlugins() {
		pr, msg, err := postFilter(ctx, fw, plugins, factory, snapshot, state, pod, diagnosis.NodeToStatus, clock)
		if err != nil {
			return fail("%v", err)
		}
		res.PostFilter = pr
		fitError.Diagnosis.PostFilterMsg = msg
	}
	res.Message = fitError.Error()
	return res
}

func schedulerName(p *v1.Pod) string {
	if p.Spec.SchedulerName == "" {
		return v1.DefaultSchedulerName
	}
	return p.Spec.SchedulerName
}
