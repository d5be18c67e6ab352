#pragma once

#include <vector>

#include "tandem/placement/internal/problem.h"

namespace tandem::placement {

/// How a list placement weighs things; several are tried, since none is best for all graphs.
struct ListRule {
  double copy_rank = 1;     ///< how much copies count in the remaining path that orders the nodes
  double copy_penalty = 0;  ///< seconds added to a finish for each second of copies that it needs
};

/// Places nodes one after the other, those with the longest remaining path first, each where it is
/// over soonest: after its inputs have got there, in the first gap that is long enough. What is
/// light and has no inputs placed yet (variables, constants, reads) waits, and goes with the first
/// that reads it.
class ListPlacement {
 public:
  /// `otherwise`: for groups about which nothing can be said.
  ListPlacement(const Problem& problem, const Assignment& otherwise);
  Assignment place(const ListRule& rule);
  /// Whether a node is so small that it goes with its readers.
  bool light(int node) const { return light_[static_cast<std::size_t>(node)] != 0; }

 private:
  struct Gap {
    double begin, end;
  };
  struct Stream {
    double free = 0;
    std::vector<Gap> gaps;
  };
  struct Arrived {
    int memory;
    double time;
    int next;
  };
  struct Trial {
    double finish = 0;
    double copies = 0;  ///< seconds
    double begin = 0;
    int stream = 0;
    bool fits = true;
  };
  void rank(double copy_weight);
  double mean_copy(double bytes) const { return copy_latency_ + bytes * copy_rate_; }
  const std::vector<int>& candidates(int node);
  bool can_wait(int node);
  Trial attempt(int node, int device);
  void commit(int node, int device);
  double arrival(int value, int to, double& copies, bool keep);
  void assign(int group, int device);
  void fill(Stream& stream, double begin, double end);
  int device_of(int node) const {
    return assignment_[static_cast<std::size_t>(problem_.group[static_cast<std::size_t>(node)])];
  }

  const Problem& problem_;
  const Assignment& otherwise_;
  std::vector<char> light_;
  double copy_latency_ = 0, copy_rate_ = 0;  // of a mean copy
  std::vector<double> rank_;
  std::vector<int> order_;

  Assignment assignment_;
  std::vector<std::vector<Stream>> streams_;  // by device
  std::vector<double> lane_free_;             // copy lanes, as TaskGraph numbers them
  std::vector<double> lane_trial_;            // the same within an attempt
  std::vector<int> lanes_touched_;
  std::vector<double> made_;  // by value: when it is there, where it was made
  std::vector<int> copies_of_value_;
  std::vector<Arrived> arrived_;
  std::vector<double> used_;  // by memory: bytes
  std::vector<int> unread_;   // by value: readers to come
  std::vector<char> waits_;   // by node: how many wait in a row
  std::vector<int> few_;
};

}  // namespace tandem::placement
