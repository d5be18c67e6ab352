#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tandem/core/cancellation.h"

namespace tandem::fs {

using CancellationPtr = std::shared_ptr<const Cancellation>;

/// An object of a store, and the path that errors call it by.
struct ObjectName {
  std::string bucket = "";
  std::string key = "";
  std::string path = "";
};

struct ObjectInfo {
  std::uint64_t size = 0;
  std::string version = "";  ///< changes with the content: an ETag, or a generation
};

/// What begins an object: the first bytes, and what it is.
struct ObjectHead {
  ObjectInfo info = {};
  std::string bytes = "";
};

struct ObjectPage {
  struct Item {
    std::string key = "";
    std::uint64_t size = 0;
  };
  std::vector<Item> objects = {};
  std::vector<std::string> prefixes = {};  ///< up to the delimiter, with it
  std::string next = "";                   ///< where the next page begins; empty: there is none
};

/// The content of an object that is sent in parts. Nothing is visible before `complete`.
class Upload {
 public:
  virtual ~Upload() = default;
  /// Parts are numbered from 0. Called by several threads at a time where `parallel`, else in
  /// order. `last` follows all others.
  virtual void put_part(int number, std::string_view bytes, bool last,
                        const CancellationPtr& cancellation) = 0;
  virtual bool parallel() const = 0;
  /// Makes the object visible, after all parts.
  virtual void complete(const CancellationPtr& cancellation) = 0;
  /// Removes what was sent.
  virtual void abort() noexcept = 0;
};

/// A store of objects under keys, in buckets. Thread-safe. Errors are typed, "PATH; reason".
class ObjectStore {
 public:
  virtual ~ObjectStore() = default;

  /// None where there is no such object.
  virtual std::optional<ObjectInfo> info(const ObjectName& object, const CancellationPtr& c) = 0;
  /// The first `bytes` bytes, or what there is; none where there is no such object.
  virtual std::optional<ObjectHead> head(const ObjectName& object, std::size_t bytes,
                                         const CancellationPtr& c) = 0;
  /// Bytes of the version that `info` names; FailedPreconditionError if it was replaced.
  virtual std::size_t read(const ObjectName& object, const ObjectInfo& info, std::uint64_t offset,
                           std::span<char> out, const CancellationPtr& c) = 0;

  virtual void put(const ObjectName& object, std::string_view bytes, const CancellationPtr& c) = 0;
  virtual std::unique_ptr<Upload> begin_upload(const ObjectName& object,
                                               const CancellationPtr& c) = 0;
  /// Makes an object of `size` bytes longer.
  virtual void append(const ObjectName& object, std::uint64_t size, std::string_view bytes,
                      const CancellationPtr& c) = 0;
  virtual void copy(const ObjectName& from, const ObjectName& to, const CancellationPtr& c) = 0;
  virtual void remove(const ObjectName& object, const CancellationPtr& c) = 0;

  /// A page of at most `most` objects (0: the store's own number) whose keys begin with
  /// `object.key`; those with a `delimiter` behind that are one prefix.
  virtual ObjectPage list(const ObjectName& object, std::string_view delimiter, int most,
                          const std::string& page, const CancellationPtr& c) = 0;
  /// The names of all buckets.
  virtual std::vector<std::string> buckets(const std::string& path, const CancellationPtr& c) = 0;
};

}  // namespace tandem::fs
