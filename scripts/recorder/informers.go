// Informers that hold the objects of a case, and the other things a framework wants around it.

package main

import (
	"context"
	"slices"
	"sort"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	resourcev1 "k8s.io/api/resource/v1"
	resourcev1beta2 "k8s.io/api/resource/v1beta2"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
)

type doneChecker struct{}

var closedCh = func() chan struct{} { c := make(chan struct{}); close(c); return c }()

func (doneChecker) Name() string          { return "static" }
func (doneChecker) Done() <-chan struct{} { return closedCh }

type registration struct{}

func (registration) HasSynced() bool                     { return true }
func (registration) HasSyncedChecker() cache.DoneChecker { return doneChecker{} }

// orderedIndexer lists objects by their key instead of by chance.
type orderedIndexer struct{ cache.Indexer }

func byKey(objs []interface{}) []interface{} {
	key := func(o interface{}) string { k, _ := cache.MetaNamespaceKeyFunc(o); return k }
	sort.SliceStable(objs, func(i, j int) bool { return key(objs[i]) < key(objs[j]) })
	return objs
}

func (i orderedIndexer) List() []interface{} { return byKey(i.Indexer.List()) }
func (i orderedIndexer) Index(name string, obj interface{}) ([]interface{}, error) {
	objs, err := i.Indexer.Index(name, obj)
	return byKey(objs), err
}
func (i orderedIndexer) ByIndex(name, value string) ([]interface{}, error) {
	objs, err := i.Indexer.ByIndex(name, value)
	return byKey(objs), err
}

// staticInformer is an informer that has synced and sees no more events.
type staticInformer struct {
	indexer cache.Indexer
	objs    []interface{}
}

func newStaticInformer(objs []interface{}) *staticInformer {
	i := &staticInformer{
		indexer: orderedIndexer{cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})},
		objs:    objs,
	}
	for _, o := range objs {
		_ = i.indexer.Add(o)
	}
	return i
}

var _ cache.SharedIndexInformer = &staticInformer{}

func (i *staticInformer) AddEventHandler(h cache.ResourceEventHandler) (cache.ResourceEventHandlerRegistration, error) {
	for _, o := range i.objs {
		h.OnAdd(o, true)
	}
	return registration{}, nil
}
func (i *staticInformer) AddEventHandlerWithResyncPeriod(h cache.ResourceEventHandler, _ time.Duration) (cache.ResourceEventHandlerRegistration, error) {
	return i.AddEventHandler(h)
}
func (i *staticInformer) AddEventHandlerWithOptions(h cache.ResourceEventHandler, _ cache.HandlerOptions) (cache.ResourceEventHandlerRegistration, error) {
	return i.AddEventHandler(h)
}
func (i *staticInformer) RemoveEventHandler(cache.ResourceEventHandlerRegistration) error { return nil }
func (i *staticInformer) GetStore() cache.Store                                           { return i.indexer }
func (i *staticInformer) GetController() cache.Controller                                 { return nil }
func (i *staticInformer) Run(<-chan struct{})                                             {}
func (i *staticInformer) RunWithContext(context.Context)                                  {}
func (i *staticInformer) HasSynced() bool                                                 { return true }
func (i *staticInformer) HasSyncedChecker() cache.DoneChecker                             { return doneChecker{} }
func (i *staticInformer) LastSyncResourceVersion() string                                 { return "1" }
func (i *staticInformer) SetWatchErrorHandler(cache.WatchErrorHandler) error              { return nil }
func (i *staticInformer) SetWatchErrorHandlerWithContext(cache.WatchErrorHandlerWithContext) error {
	return nil
}
func (i *staticInformer) SetTransform(cache.TransformFunc) error { return nil }
func (i *staticInformer) IsStopped() bool                        { return false }
func (i *staticInformer) AddIndexers(indexers cache.Indexers) error {
	return i.indexer.AddIndexers(indexers)
}
func (i *staticInformer) GetIndexer() cache.Indexer { return i.indexer }

// informedTypes are the kinds a case may have, and which the plugins look at.
var informedTypes = []runtime.Object{
	&v1.Node{}, &v1.Pod{}, &v1.Namespace{}, &v1.Service{}, &v1.ReplicationController{},
	&v1.PersistentVolume{}, &v1.PersistentVolumeClaim{},
	&appsv1.ReplicaSet{}, &appsv1.StatefulSet{},
	&storagev1.StorageClass{}, &storagev1.CSINode{}, &storagev1.CSIDriver{},
	&storagev1.CSIStorageCapacity{}, &storagev1.VolumeAttachment{},
	&policyv1.PodDisruptionBudget{}, &schedulingv1.PriorityClass{},
	&resourcev1.ResourceClaim{}, &resourcev1.ResourceClaimTemplate{}, &resourcev1.ResourceSlice{}, &resourcev1.DeviceClass{},
	&resourcev1beta2.DeviceTaintRule{},
}

var clusterScoped = map[string]bool{
	"Node": true, "Namespace": true, "PersistentVolume": true, "StorageClass": true, "CSINode": true,
	"CSIDriver": true, "VolumeAttachment": true, "PriorityClass": true, "ResourceSlice": true,
	"DeviceClass": true, "DeviceTaintRule": true,
}

// nominator holds the pods nominated to nodes. (The scheduling queue's own
// nominator needs the pods to be queued.)
type nominator map[string][]fwk.PodInfo

func (nominator) AddNominatedPod(klog.Logger, fwk.PodInfo, *fwk.NominatingInfo) {}
func (nominator) DeleteNominatedPodIfExists(*v1.Pod)                            {}
func (nominator) UpdateNominatedPod(klog.Logger, *v1.Pod, fwk.PodInfo)          {}
func (n nominator) NominatedPodsForNode(nodeName string) []fwk.PodInfo {
	return slices.Clone(n[nodeName])
}

type activator struct{}

func (activator) Activate(klog.Logger, map[string]*v1.Pod) {}
