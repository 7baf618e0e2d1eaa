// What the PostFilter plugins propose, and all that they could have proposed.

package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sort"
	"strings"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/informers"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"
	fwk "k8s.io/kube-scheduler/framework"
	internalcache "k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/defaultpreemption"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"
	"k8s.io/kubernetes/pkg/scheduler/framework/preemption"
	schedutil "k8s.io/kubernetes/pkg/scheduler/util"
)

// postFilter runs the PostFilter plugins and finds out which victims they take.
func postFilter(ctx context.Context, fw framework.Framework, plugins map[string]fwk.Plugin, factory informers.SharedInformerFactory, snapshot *internalcache.Snapshot, state fwk.CycleState, pod *v1.Pod, m *framework.NodeToStatus, clock *meter) (*postFilterResult, string, error) {
	out := &postFilterResult{}
	var dp *defaultpreemption.DefaultPreemption
	for _, e := range fw.ListPlugins().PostFilter.Enabled {
		if e.Name == names.DefaultPreemption {
			dp = plugins[e.Name].(*defaultpreemption.DefaultPreemption)
		}
	}
	var deleted []string
	var mu sync.Mutex
	victimsOf := map[string]*extenderv1.Victims{}
	clock.pause()
	if dp != nil {
		dp.Executor.PreemptPod = func(_ context.Context, _ preemption.Candidate, _ preemption.ExecutorPreemptor, victim *v1.Pod, _ string) error {
			mu.Lock()
			defer mu.Unlock()
			deleted = append(deleted, podKey(victim))
			return nil
		}
		// The candidates, through the same code.
		if ok, _ := dp.PodEligibleToPreemptOthers(ctx, pod, m.Get(pod.Status.NominatedNodeName)); ok {
			potential, err := m.NodesForStatusCode(snapshot.NodeInfos(), fwk.Unschedulable)
			if err != nil {
				return nil, "", err
			}
			if len(potential) > 0 {
				_, num := dp.GetOffsetAndNumCandidates(int32(len(potential)))
				out.Sampled = int(num) < len(potential)
				pdbs, err := factory.Policy().V1().PodDisruptionBudgets().Lister().List(labels.Everything())
				if err != nil {
					return nil, "", err
				}
				cands, _, _ := dp.Evaluator.DryRunPreemption(ctx, state, pod, potential, pdbs, 0, int32(len(potential)))
				for _, c := range cands {
					victimsOf[c.Name()] = c.Victims()
				}
			}
		}
	}

	clock.run()
	r, s := fw.RunPostFilterPlugins(ctx, state, pod, m)
	clock.pause()
	out.Code = s.Code().String()
	out.Message = s.Message()
	if r != nil && r.NominatingInfo != nil && r.NominatingInfo.Mode() == fwk.ModeOverride {
		n := r.NominatingInfo.NominatedNodeName
		out.NominatedNode = &n
	}
	if dp != nil {
		for i := 0; dp.Executor.IsPodRunningPreemption(pod.UID); i++ {
			if i > 100000 {
				return nil, "", errors.New("recorder: preemption does not end")
			}
			time.Sleep(20 * time.Microsecond)
		}
	}
	if len(victimsOf) > 0 {
		out.Candidates = map[string]*candidate{}
		for n, v := range victimsOf {
			c := &candidate{NumPDBViolations: v.NumPDBViolations}
			for _, p := range v.Pods {
				c.Victims = append(c.Victims, podKey(p))
			}
			out.Candidates[n] = c
		}
	}
	if s.IsSuccess() && out.NominatedNode != nil && *out.NominatedNode != "" && dp != nil {
		chosen := *out.NominatedNode
		if out.Sampled {
			out.NominatedNodes = []string{chosen}
		} else {
			out.NominatedNodes = tiedNodes(victimsOf)
			if !slices.Contains(out.NominatedNodes, chosen) {
				return nil, "", fmt.Errorf("recorder: nominated node %s is not among %v", chosen, out.NominatedNodes)
			}
		}
		del := func(node string) ([]string, []string) {
			all, live := []string{}, []string{}
			if v := victimsOf[node]; v != nil {
				for _, p := range v.Pods {
					all = append(all, podKey(p))
					if p.DeletionTimestamp == nil {
						live = append(live, podKey(p))
					}
				}
			}
			sort.Strings(all)
			sort.Strings(live)
			return all, live
		}
		mu.Lock()
		sort.Strings(deleted)
		got := strings.Join(deleted, ",")
		mu.Unlock()
		if _, want := del(chosen); got != strings.Join(want, ",") {
			return nil, "", fmt.Errorf("recorder: deleted %q, want %v", got, want)
		}
		first := out.NominatedNodes[0]
		out.NominatedNode = &first
		out.Victims, out.Deleted = del(first)
	}
	return out, s.Message(), nil
}

// tiedNodes is pickOneNodeForPreemption(), but gives all nodes that remain.
func tiedNodes(victims map[string]*extenderv1.Victims) []string {
	var left []string
	for n := range victims {
		left = append(left, n)
	}
	sort.Strings(left)
	for _, f := range []func(v *extenderv1.Victims) int64{
		func(v *extenderv1.Victims) int64 { return -v.NumPDBViolations },
		func(v *extenderv1.Victims) int64 { return -int64(corev1helpers.PodPriority(v.Pods[0])) },
		func(v *extenderv1.Victims) int64 {
			var sum int64
			for _, p := range v.Pods {
				sum += int64(corev1helpers.PodPriority(p)) + int64(math.MaxInt32+1)
			}
			return -sum
		},
		func(v *extenderv1.Victims) int64 { return -int64(len(v.Pods)) },
		earliestStart,
	} {
		best := int64(math.MinInt64)
		var sel []string
		for _, n := range left {
			sc := f(victims[n])
			if sc > best {
				best, sel = sc, nil
			}
			if sc == best {
				sel = append(sel, n)
			}
		}
		if len(sel) == 1 {
			return sel
		}
		left = sel
	}
	return left
}

// earliestStart is the score by GetEarliestPodStartTime(), which takes the
// present where no victim has started: the node that is looked at last wins,
// and the order is random. So all such nodes tie here.
func earliestStart(v *extenderv1.Victims) int64 {
	now := time.Now()
	if start := schedutil.GetEarliestPodStartTime(v); start.Time.Before(now) {
		return start.UnixNano()
	}
	return math.MaxInt64
}
