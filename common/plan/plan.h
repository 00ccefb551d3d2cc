// SPDX-License-Identifier: Apache-2.0
// The plan: how many functions of which size train a job, and how their gradients are aggregated.
// One vocabulary for the planner that chooses it, the API object that shows it, the functions that
// execute it and the tests that count what it costs. Plain values; no I/O.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/base/enum_names.h"
#include "common/base/status.h"
#include "common/plan/prediction.h"

namespace lambdadnn {

// Elements of a block of the flat parameter vector, unless a plan says otherwise.
inline constexpr int64_t kDefaultBlockElements = 16 * 1024;

// The flat parameter vector in blocks: shards begin and end at their edges, and norms are summed by
// them.
struct ParameterBlocks {
  int64_t parameters = 0;  // elements, float32
  int64_t block_elements = kDefaultBlockElements;
  friend bool operator==(const ParameterBlocks&, const ParameterBlocks&) = default;
};

// Of one worker: models compute on one device.
inline constexpr int kMostGpus = 1;

enum class TransportKind { kObjectStore, kDirect };
template <>
inline constexpr auto kEnumNames<TransportKind> = EnumNameTable("ObjectStore", "Direct");

// Where the servers of a plan run: in functions of their own, or among the workers
// (geometry.h, HostOf).
enum class Placement { kDedicated, kWorkers };
template <>
inline constexpr auto kEnumNames<Placement> = EnumNameTable("Dedicated", "Workers");

// A tree reduce over K shards (docs/theory.md, section 2).
struct AggregationPlan {
  TransportKind transport = TransportKind::kObjectStore;
  Placement placement = Placement::kDedicated;
  // K: the flat parameter vector is cut into this many ranges (plan/geometry.h).
  int shards = 1;
  // Top-down [1, m_k, ..., m_1, n]: one root, then ever wider layers of servers, then the workers.
  // layers.back() = n; layers.size() >= 2.
  std::vector<int> layers = {1, 1};
  // s, a divisor of K: a layer of width m has m x s servers, each with K/s of the shards.
  int spread = 1;

  int workers() const { return layers.back(); }
  // Layers of servers: L >= 1.
  int server_layers() const { return static_cast<int>(layers.size()) - 1; }
  // m_l for l in 1..L, counted from the workers up: Width(L) == 1; Width(0) == n.
  int Width(int level) const { return layers[layers.size() - 1 - static_cast<size_t>(level)]; }
  // Children of the busiest server of level l in 1..L.
  int FanIn(int level) const { return (Width(level - 1) + Width(level) - 1) / Width(level); }
  // s x (m_1 + ... + m_L).
  int servers() const;
  // Functions that are servers alone: as many, or none where the workers serve.
  int server_functions() const { return placement == Placement::kDedicated ? servers() : 0; }

  // kInvalidArgument with one sentence when the rules above are broken.
  Status Validate() const;
  friend bool operator==(const AggregationPlan&, const AggregationPlan&) = default;
};

// What functions execute: a slice request carries it whole (common/protocol/slice.h), and they know
// nothing else of a plan.
struct ExecutionPlan {
  // Everything that changes arithmetic carries a revision and the first iteration it holds for.
  int revision = 1;
  int64_t first_iteration = 0;

  int functions = 1;   // n, the workers
  int memory_mib = 0;  // of one worker
  // Of that for samples where a worker's share of the data does not fit: it reads those that it
  // cannot keep again in each epoch (sample_memory.h). 0 = the share is kept whole.
  int sample_memory_mib = 0;
  int server_memory_mib = 0;
  int gpu = 0;                // GPUs of one worker; servers have none
  int local_batch_size = 0;   // ceil(global_batch_size / n): what memory must hold
  int global_batch_size = 0;  // samples of a full iteration
  int64_t iterations = 0;     // of the whole job
  int64_t iterations_per_epoch = 0;
  AggregationPlan aggregation;

  // What else determines the bits of the result (docs/ARCHITECTURE.md, guarantee 1).
  int threads = 1;               // of one worker's LibTorch
  std::string isa;               // "avx2", "avx512", ...; empty = not pinned
  std::string libtorch;          // its version and BLAS; empty = not pinned
  int virtual_partitions = 64;   // V >= n; constant within an epoch
  int64_t checkpoint_every = 0;  // iterations between checkpoints; 0 = only where slices end

  // Elements of the flat vector, float32: the model's parameters and, from the edge of a block to
  // its end, the buffers that training changes (batch norm's). They are values, not weights: no
  // update, norm or clipping touches them.
  int64_t parameters = 0;
  int64_t buffers = 0;
  // A power of two. Part of the bits of clipping by global norm, and so one for a whole job.
  int64_t block_elements = kDefaultBlockElements;

  ParameterBlocks blocks() const { return {parameters, block_elements}; }
  int64_t buffers_begin() const { return parameters - buffers; }
  // Of the job, the last may be short; 0 without iterations_per_epoch. Of any numbers.
  int64_t epochs() const;
  Status Validate() const;
  friend bool operator==(const ExecutionPlan&, const ExecutionPlan&) = default;
};

// What the planner answers: a plan to execute, what it expects of it, and why it is no better.
struct Plan : ExecutionPlan {
  Prediction predicted;
  // Binding limits: any of deadline, budget, memory, quota, functions, nodes, batch,
  // parameterServerBandwidth, functionTimeout, fixed.
  std::vector<std::string> binding;

  friend bool operator==(const Plan&, const Plan&) = default;
};

}  // namespace lambdadnn
