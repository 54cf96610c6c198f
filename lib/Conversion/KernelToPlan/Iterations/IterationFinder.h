//===- IterationFinder.h - Where the items of a program repeat --*- C++ -*-===//
#ifndef SPMD_LIB_CONVERSION_KERNELTOPLAN_ITERATIONFINDER_H
#define SPMD_LIB_CONVERSION_KERNELTOPLAN_ITERATIONFINDER_H

#include "mlir/IR/Operation.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SmallVector.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace spmd {

/// A program in which loops are looked for: items in order, each of a kind, with the values that it touches. A value is
/// the caller's to name, by any number that is no other's; the first item that touches it gives it, unless it is there
/// from the start.
class IterationFinder {
public:
  using Value = uint64_t;

  /// Items [begin, end), in which item i + period is item i, one iteration later.
  struct Range {
    unsigned begin = 0, end = 0, period = 0;
    unsigned lastIteration() const { return end - period; }
  };
  /// Of an item before a range of which there is one for each iteration, the next one.
  using Links = llvm::DenseMap<unsigned, unsigned>;
  /// Of a value of one iteration, that of the next.
  using Later = llvm::DenseMap<Value, Value>;

  /// A value that is there from the start.
  void addOutside(Value value) { find(value).item = kOutside; }
  /// The same, and the loop is fed it: `at` of `list`.
  void addFed(Value value, unsigned list, int64_t at);
  void addItem(mlir::Attribute kind, llvm::ArrayRef<Value> touched);

  /// The longest range of at least two iterations. With `links`, values may also come from items before it that are
  /// linked.
  std::optional<Range> findRange(bool mayLink = false) const;
  /// Adds the links of the items of a range.
  void addLinks(const Range &range, Links &links) const;
  /// Whether `later` is in an iteration what `value` is in the one before.
  bool isLater(Value value, Value later, unsigned period, Links *links) const;

  /// A range of which the last iteration may stand for `more` that follow it: each value that it touches is the same in
  /// the one before or lies one iteration back at most, what is behind it reads of its values those of the last two
  /// iterations, and the loop is fed so often. `later` gets, of each value that iterations have for themselves, that of
  /// the next. Nothing where there is none; `why` says why.
  std::optional<Range> findIteration(int64_t more, Later &later, std::string &why) const;

private:
  static constexpr unsigned kOutside = ~0u, kUnknown = kOutside - 1;

  struct Place {
    unsigned item = kUnknown, at = 0; ///< who gives it, and as what
    int64_t list = -1, number = 0;    ///< where it is fed
  };
  struct Item {
    unsigned kind;
    llvm::SmallVector<Value, 8> touched;
  };

  Place &find(Value value) { return places[value]; }
  const Place &find(Value value) const { return places.find(value)->second; }
  llvm::SmallVector<unsigned> findPeriods() const;
  std::optional<Range> findRange(unsigned period, bool mayLink) const;
  bool isLater(unsigned item, unsigned period, Links *links) const;

  std::vector<Item> items;
  llvm::DenseMap<Value, Place> places;
  llvm::DenseMap<mlir::Attribute, unsigned> kinds;
  llvm::SmallVector<int64_t> fedCounts; ///< by list
};

/// All that two ops have alike which do the same to different values, as a kind of item. Kernels have their code by
/// their symbols.
mlir::Attribute describeItem(mlir::Operation *op);

} // namespace spmd

#endif // SPMD_LIB_CONVERSION_KERNELTOPLAN_ITERATIONFINDER_H
