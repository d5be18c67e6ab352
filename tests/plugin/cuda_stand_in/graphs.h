#pragma once

// Graphs of the stand-in's: lists of things to do.

#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

#include "tests/plugin/cuda_stand_in/calls.h"

/// A node of a graph: what it does, from what it was given last, is the graph's.
struct CUgraphNode_st {
  std::size_t number = 0;
};
/// Its nodes come one after the other, as in all graphs of Tandem's.
struct CUgraph_st {
  CUgraph_st() { ++stand_in::objects.graphs; }
  ~CUgraph_st() { --stand_in::objects.graphs; }
  std::vector<std::unique_ptr<CUgraphNode_st>> nodes;
  std::vector<std::function<void()>> work;  // by number of the node
  long long kernels = 0, bytes_to_gpu = 0, bytes_from_gpu = 0;
};

/// What is launched of it: changes are for later launches.
struct CUgraphExec_st {
  CUgraphExec_st() { ++stand_in::objects.graphs; }
  ~CUgraphExec_st() { --stand_in::objects.graphs; }
  std::vector<std::function<void()>> work;
  long long kernels = 0, bytes_to_gpu = 0, bytes_from_gpu = 0;
};
