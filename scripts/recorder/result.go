// What is read and what is written.

package main

import (
	"encoding/json"
)

type testCase struct {
	Name         string            `json:"name"`
	Config       json.RawMessage   `json:"config"`
	FeatureGates map[string]bool   `json:"featureGates,omitempty"`
	Objects      []json.RawMessage `json:"objects"`
	Pod          json.RawMessage   `json:"pod"`
}

// result is the line written for a case.
type result struct {
	Name string `json:"name"`
	// Error is set if the case could not be evaluated; nothing else is set then
	// (for instance an invalid configuration).
	Error string `json:"error,omitempty"`
	// Result is what the scheduling cycle comes to: "feasible",
	// "unschedulable", "noNodes", "gated" (PreEnqueue), or "error" (a plugin
	// returned the code Error, so that kube-scheduler gives up the cycle).
	Result string `json:"result,omitempty"`
	// PreEnqueue is the first PreEnqueue plugin's refusal.
	PreEnqueue *status          `json:"preEnqueue,omitempty"`
	PreFilter  *preFilterResult `json:"preFilter,omitempty"`
	// Nodes has an entry for each node; null means that the node passes.
	// It is absent if PreFilter did not succeed.
	Nodes    map[string]*status `json:"nodes,omitempty"`
	Feasible []string           `json:"feasible"`
	// NominatedNodePasses is set if the incoming pod has a
	// status.nominatedNodeName: whether that node alone passes the filters, in
	// which case kube-scheduler looks at no other node.
	NominatedNodePasses *bool `json:"nominatedNodePasses,omitempty"`
	// ScoreSkipped has the plugins whose PreScore returned Skip.
	ScoreSkipped []string              `json:"scoreSkipped,omitempty"`
	Scores       map[string]*nodeScore `json:"scores,omitempty"`
	Best         []string              `json:"best,omitempty"`
	// ScoreError is set if there is one feasible node only and scoring it
	// fails; kube-scheduler would not score it.
	ScoreError string `json:"scoreError,omitempty"`
	// Message is the text of the PodScheduled condition and of the
	// FailedScheduling event (the event's is cut to 1024 bytes).
	Message    string            `json:"message,omitempty"`
	PostFilter *postFilterResult `json:"postFilter,omitempty"`
	// Seconds is the CPU time of the scheduling cycle, with the flag -seconds.
	Seconds float64 `json:"seconds,omitempty"`
}

type status struct {
	Plugin  string   `json:"plugin"`
	Code    string   `json:"code"`
	Reasons []string `json:"reasons"`
}

type preFilterResult struct {
	Code    string   `json:"code"`
	Plugin  string   `json:"plugin,omitempty"`
	Reasons []string `json:"reasons,omitempty"`
	// NodeNames is the restriction to some nodes; null is no restriction.
	NodeNames []string `json:"nodeNames"`
	// Skipped has the plugins whose PreFilter returned Skip.
	Skipped []string `json:"skipped"`
}

type nodeScore struct {
	Total      int64            `json:"total"`
	Scores     map[string]int64 `json:"scores"`
	Normalized map[string]int64 `json:"normalized"`
	Raw        map[string]int64 `json:"raw"`
}

type postFilterResult struct {
	Code    string `json:"code"`
	Message string `json:"message"`
	// NominatedNode is the node to nominate; null leaves the pod's
	// nominatedNodeName as it is, "" clears it.
	NominatedNode *string `json:"nominatedNode"`
	// NominatedNodes has all nodes that are equally good; kube-scheduler takes
	// any of them, NominatedNode is the first by name.
	NominatedNodes []string `json:"nominatedNodes,omitempty"`
	// Victims has the victims on NominatedNode, sorted by namespace/name.
	Victims []string `json:"victims,omitempty"`
	// Deleted has those victims which the preemption deletes: the ones that
	// are not already terminating.
	Deleted []string `json:"deleted,omitempty"`
	// Candidates has all candidate nodes of the dry run.
	Candidates map[string]*candidate `json:"candidates,omitempty"`
	// Sampled is set if the configuration makes the dry run stop before all
	// nodes have been tried, so that the result depends on chance.
	Sampled bool `json:"sampled,omitempty"`
}

type candidate struct {
	// Victims in the order of decreasing importance.
	Victims          []string `json:"victims"`
	NumPDBViolations int64    `json:"numPDBViolations"`
}
