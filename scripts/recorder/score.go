// The scores of the feasible nodes.

package main

import (
	"context"
	"fmt"
	"math"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// score runs PreScore and Score over the feasible nodes, like prioritizeNodes().
func score(ctx context.Context, res *result, fw framework.Framework, plugins map[string]fwk.Plugin, state fwk.CycleState, pod *v1.Pod, feasible []fwk.NodeInfo, clock *meter) error {
	res.Scores = map[string]*nodeScore{}
	for _, n := range feasible {
		res.Scores[n.Node().Name] = &nodeScore{Scores: map[string]int64{}, Normalized: map[string]int64{}, Raw: map[string]int64{}}
	}
	if !fw.HasScorePlugins() {
		for _, ns := range res.Scores {
			ns.Total = 1
		}
	} else {
		if s := fw.RunPreScorePlugins(ctx, state, pod, feasible); !s.IsSuccess() {
			return s.AsError()
		}
		skipped := state.GetSkipScorePlugins()
		res.ScoreSkipped = sets.List(skipped)
		scores, s := fw.RunScorePlugins(ctx, state, pod, feasible)
		clock.pause()
		if !s.IsSuccess() {
			return s.AsError()
		}
		for _, x := range scores {
			ns := res.Scores[x.Name]
			ns.Total = x.TotalScore
			for _, ps := range x.Scores {
				ns.Scores[ps.Name] = ps.Score
			}
		}
		for _, e := range fw.ListPlugins().Score.Enabled {
			if skipped.Has(e.Name) {
				continue
			}
			pl, ok := plugins[e.Name].(fwk.ScorePlugin)
			if !ok {
				return fmt.Errorf("recorder: %s is no score plugin", e.Name)
			}
			list := make(fwk.NodeScoreList, len(feasible))
			for i, n := range feasible {
				v, s := pl.Score(ctx, state, pod, n)
				if !s.IsSuccess() {
					return s.AsError()
				}
				list[i] = fwk.NodeScore{Name: n.Node().Name, Score: v}
				res.Scores[list[i].Name].Raw[e.Name] = v
			}
			if ext := pl.ScoreExtensions(); ext != nil {
				if s := ext.NormalizeScore(ctx, state, pod, list); !s.IsSuccess() {
					return s.AsError()
				}
			}
			for _, x := range list {
				ns := res.Scores[x.Name]
				ns.Normalized[e.Name] = x.Score
				if x.Score*int64(e.Weight) != ns.Scores[e.Name] {
					return fmt.Errorf("recorder: %s on %s: %d * %d != %d", e.Name, x.Name, x.Score, e.Weight, ns.Scores[e.Name])
				}
			}
		}
	}
	best := int64(math.MinInt64)
	for _, n := range feasible {
		name := n.Node().Name
		if t := res.Scores[name].Total; t > best {
			best, res.Best = t, nil
		}
		if res.Scores[name].Total == best {
			res.Best = append(res.Best, name)
		}
	}
	return nil
}
