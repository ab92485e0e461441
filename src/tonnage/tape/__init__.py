"""One layer run on sizes alone: what autograd keeps of it, and what each moment of its backward holds.

An operation writes its forward pass in the words of `Tape` (products, norms, attention); the tape notes what PyTorch's
own derivative of each word saves and allocates, as bytes for each token, pair of tokens or parameter. The result is a
closed form: coefficients that hold for every length, batch and number of ranks.
"""

from tonnage.tape._attending import Adapters as Adapters
from tonnage.tape._attending import Held as Held
from tonnage.tape._attending import Router as Router
from tonnage.tape._attending import Setting as Setting
from tonnage.tape._attending import Style as Style
from tonnage.tape._attending import Types as Types
from tonnage.tape._code import CODES as CODES
from tonnage.tape._code import Code as Code
from tonnage.tape._moments import Kept as Kept
from tonnage.tape._moments import Layer as Layer
from tonnage.tape._moments import Moment as Moment
from tonnage.tape._moments import forward as forward
from tonnage.tape._moments import layer as layer
from tonnage.tape._nanotron import Nanotron as Nanotron
from tonnage.tape._nanotron import NanotronCode as NanotronCode
from tonnage.tape._torchtitan import Own as Own
from tonnage.tape._torchtitan import Titan as Titan
from tonnage.tape._torchtitan import TitanCode as TitanCode
from tonnage.tape._work import Collective as Collective
from tonnage.tape._work import Exchange as Exchange
from tonnage.tape._work import Group as Group
from tonnage.tape._work import Pass as Pass
from tonnage.tape._work import Work as Work
from tonnage.tape.tape import TENSOR as TENSOR
from tonnage.tape.tape import TOKEN as TOKEN
from tonnage.tape.tape import Account as Account
from tonnage.tape.tape import Extent as Extent
from tonnage.tape.tape import Key as Key
from tonnage.tape.tape import Tape as Tape
from tonnage.tape.tape import Tensor as Tensor
from tonnage.tape.tape import without as without

CODES["torchtitan"] = TitanCode
CODES["nanotron"] = NanotronCode
