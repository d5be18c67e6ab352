#pragma once

/// Thread-safety annotations: they name the lock that guards a member or that a function needs, and
/// clang checks them (`-Wthread-safety`, on in the clang builds). Other compilers ignore them.
///
///     class Counter {
///      public:
///       void add(int n) {
///         const MutexLock lock(mutex_);
///         total_ += n;
///       }
///
///      private:
///       Mutex mutex_;
///       int total_ TANDEM_GUARDED_BY(mutex_) = 0;
///     };
///
/// libstdc++'s std::mutex and std::lock_guard carry no annotations, so clang can follow a lock only
/// through the types below. They cost nothing beyond what they wrap.

#include <chrono>
#include <condition_variable>
#include <mutex>

#if defined(__clang__)
#define TANDEM_THREAD_ANNOTATION(x) __attribute__((x))
#else
#define TANDEM_THREAD_ANNOTATION(x)
#endif

/// A member that may be read and written only with the lock held.
#define TANDEM_GUARDED_BY(lock) TANDEM_THREAD_ANNOTATION(guarded_by(lock))
/// A pointer member: what it points to may be used only with the lock held.
#define TANDEM_PT_GUARDED_BY(lock) TANDEM_THREAD_ANNOTATION(pt_guarded_by(lock))
/// A function that callers call with the locks held.
#define TANDEM_REQUIRES(...) TANDEM_THREAD_ANNOTATION(requires_capability(__VA_ARGS__))
/// A function that takes the locks itself, so callers must not hold them.
#define TANDEM_EXCLUDES(...) TANDEM_THREAD_ANNOTATION(locks_excluded(__VA_ARGS__))
/// A function that acquires, or releases, the locks.
#define TANDEM_ACQUIRE(...) TANDEM_THREAD_ANNOTATION(acquire_capability(__VA_ARGS__))
#define TANDEM_RELEASE(...) TANDEM_THREAD_ANNOTATION(release_capability(__VA_ARGS__))
#define TANDEM_TRY_ACQUIRE(...) TANDEM_THREAD_ANNOTATION(try_acquire_capability(__VA_ARGS__))
/// A function that returns the lock.
#define TANDEM_RETURN_CAPABILITY(lock) TANDEM_THREAD_ANNOTATION(lock_returned(lock))
/// A function that clang cannot follow; a comment beside it says why it is right.
#define TANDEM_NO_THREAD_SAFETY_ANALYSIS TANDEM_THREAD_ANNOTATION(no_thread_safety_analysis)

namespace tandem {

/// A std::mutex that clang's analysis knows.
class TANDEM_THREAD_ANNOTATION(capability("mutex")) Mutex {
 public:
  void lock() TANDEM_ACQUIRE() { mutex_.lock(); }
  void unlock() TANDEM_RELEASE() { mutex_.unlock(); }
  bool try_lock() TANDEM_TRY_ACQUIRE(true) { return mutex_.try_lock(); }

 private:
  friend class MutexLock;
  std::mutex mutex_;
};

/// Holds a Mutex for a scope; may let go of it and take it again within. Waits on a
/// std::condition_variable by `wait`, whose caller checks its condition in a loop, so that the
/// analysis sees the guarded members it reads:
///
///     MutexLock lock(mutex_);
///     while (queue_.empty()) lock.wait(changed_);
class TANDEM_THREAD_ANNOTATION(scoped_lockable) MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) TANDEM_ACQUIRE(mutex) : lock_(mutex.mutex_) {}
  ~MutexLock() TANDEM_RELEASE() {}
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

  void unlock() TANDEM_RELEASE() { lock_.unlock(); }
  void lock() TANDEM_ACQUIRE() { lock_.lock(); }
  /// The lock is held again when it returns, also after a spurious wake-up.
  void wait(std::condition_variable& condition) { condition.wait(lock_); }
  template <class Clock, class Duration>
  std::cv_status wait_until(std::condition_variable& condition,
                            const std::chrono::time_point<Clock, Duration>& time) {
    return condition.wait_until(lock_, time);
  }

 private:
  std::unique_lock<std::mutex> lock_;
};

}  // namespace tandem
