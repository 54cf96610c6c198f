//===- Certificate.h - The proof that a plan is safe --------------*- C++ -*-===//
//
// The compiler checks the plans it makes, and the loader checks them again, so
// that an edited or damaged plan is an error and never a hang or a race.
//
//===----------------------------------------------------------------------===//

#ifndef SPMD_RUNTIME_CORE_CERTIFICATE_H
#define SPMD_RUNTIME_CORE_CERTIFICATE_H

#include "spmd/Runtime/Core/Manifest.h"
#include "spmd/Runtime/Core/Plan.h"

namespace spmd::runtime {

/// Proves, for all ranks of the manifest's mesh:
///
///  1. every buffer lies in the arena, state buffers and only they in the state
///     region, and every reference lies in its buffer;
///  2. operands have the bytes that counts, dtypes and shapes ask for, and
///     those of one command overlap only where it may work in place;
///  3. each communicator is used from one stream, so every rank issues the same
///     sequence on it, what is exchanged lies at the same bytes on all ranks,
///     but for a rank's chunk in place, and waits are for earlier commands of
///     other streams, so they are acyclic;
///  4. buffers that share bytes of the arena are never alive together;
///  5. conflicting accesses (write with read or write) to a buffer are ordered;
///  6. every byte that is read was written before, by a command of this step or
///     because it is state, batch or hyper-parameter, and every output byte is
///     written;
///  7. the gradients of every trainable unit are reduced exactly once along each
///     axis of the mesh over which the batch is cut, unless every rank computes
///     them in full, and never along a tensor axis;
///  8. the plan computes the table of values of the manifest, if it has one:
///     every command is an operation of the table on the operands that it has
///     there, and every state and output holds in the end what the table says.
///
/// 10. in that table, what ranks have apart (their chunks, their rows) is combined
///     by a collective before a state or output that all ranks share, or the
///     chunk of a state, is computed from it; a unit's chunks alone are gathered
///     for it.
/// 11. at most three collectives can be in flight together, so that communicators
///     cannot keep each other from running, whatever a device begins first.
/// Rule 9 needs the file of kernels: KernelTable.h.
///
/// Ordered means happens-before: the order in a stream, and waits. The error
/// names the commands, their locations and the number of the rule.
Status checkCertificate(const Manifest &manifest, const Plan &plan);

} // namespace spmd::runtime

#endif // SPMD_RUNTIME_CORE_CERTIFICATE_H
