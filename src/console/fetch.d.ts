/** The part of the Fetch standard that the types of browsers lack, and that the client uses outside of them. */
interface RequestInit {
  duplex?: "half";
}
